"""What can go wrong between a scheduler and the API server, and for which requests it shall."""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import parse_qs, urlsplit

_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Fault(StrEnum):
    """One kind of trouble; `after` means that the API server has executed the request by then."""

    LATENCY = "latency"  # passed on later
    SLOW = "slow answer"  # the answer comes in small pieces
    CONFLICT = "409"  # refused, as if somebody else had written
    THROTTLED = "429"  # refused, with Retry-After
    INTERNAL = "500"
    UNAVAILABLE = "503"
    EXPIRED = "401"  # the token is not good any more
    TIMEOUT_AFTER = "504 after"
    RESET = "reset"  # before the API server has seen it
    RESET_AFTER = "reset after"
    SILENCE = "silence"  # taken and never answered; the API server has not seen it
    SILENCE_AFTER = "silence after"
    CUT = "cut"  # the stream ends in the middle of a line
    TRUNCATED = "truncated JSON"  # a proper answer whose JSON stops half-way
    GARBAGE = "garbage JSON"
    HALF_OPEN = "half-open"  # the connection is accepted, and that is all
    ROTATED = "rotated certificate"  # set by hand: the server shows another one from now on


# A server that answers one of these has not executed the request.
REFUSALS = {
    Fault.CONFLICT: (409, "Conflict", "the object has been modified (made up by the proxy)"),
    Fault.THROTTLED: (429, "TooManyRequests", "too many requests (made up by the proxy)"),
    Fault.INTERNAL: (500, "InternalError", "internal error (made up by the proxy)"),
    Fault.UNAVAILABLE: (503, "ServiceUnavailable", "unavailable (made up by the proxy)"),
    Fault.EXPIRED: (401, "Unauthorized", "Unauthorized"),
}
ON_CONNECTIONS = frozenset({Fault.HALF_OPEN})
BY_HAND = frozenset({Fault.ROTATED})


class RequestClass(StrEnum):
    """What a request is for."""

    BINDING = "binding"
    STATUS = "status"  # conditions and nominations
    EVENT = "event"
    LEASE = "lease"
    EVICTION = "eviction"  # deletes
    WATCH = "watch"
    LIST = "list"
    READ = "read"  # of one object
    WRITE = "other write"
    CONNECTION = "connection"  # no request yet


WRITES = frozenset(
    {
        RequestClass.BINDING,
        RequestClass.STATUS,
        RequestClass.EVENT,
        RequestClass.LEASE,
        RequestClass.EVICTION,
        RequestClass.WRITE,
    }
)
ANY = frozenset(RequestClass) - {RequestClass.CONNECTION}


def classify(method: str, target: str) -> RequestClass:
    """Return what a request is for, by its first line."""
    address = urlsplit(target)
    parts = [part for part in address.path.split("/") if part]
    watches = parse_qs(address.query).get("watch") in (["true"], ["1"])
    if method not in _WRITES and watches:
        return RequestClass.WATCH
    if "leases" in parts:
        return RequestClass.LEASE
    if method in _WRITES:
        return _classify_write(method, parts)
    # /api/v1/nodes/n, /apis/group/v1/namespaces/ns/pods/p: an object has a name after its plural.
    rest = parts[2 if parts[:1] == ["api"] else 3 :]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    return RequestClass.READ if len(rest) > 1 else RequestClass.LIST


def _classify_write(method: str, parts: list[str]) -> RequestClass:
    if "events" in parts:
        return RequestClass.EVENT
    if parts[-1:] == ["binding"]:
        return RequestClass.BINDING
    if parts[-1:] == ["status"]:
        return RequestClass.STATUS
    return RequestClass.EVICTION if method == "DELETE" else RequestClass.WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How often a fault happens to which requests.

    `seconds` is how long what lasts does last: latency, slow answers, silence; Retry-After too.
    `limit` is after how many the rule is spent; 0 is never. `within` narrows it to requests whose
    target holds this text.
    """

    fault: Fault
    probability: float = 1.0
    classes: Collection[RequestClass] = field(default=ANY)
    seconds: float = 1.0
    limit: int = 0
    within: str = ""

    def concerns(self, kind: RequestClass, target: str) -> bool:
        """Whether a request may meet this fault."""
        return kind in self.classes and self.within in target

    def __post_init__(self) -> None:
        """Refuse what could only do nothing."""
        if self.fault in BY_HAND:
            raise ValueError(f"{self.fault}: happens when it is asked for, no rule can bring it")
        if not 0 < self.probability <= 1:
            raise ValueError(f"probability {self.probability}: not above 0 and at most 1")
        wanted = RequestClass.CONNECTION in self.classes
        if wanted != (self.fault in ON_CONNECTIONS):
            raise ValueError(f"{self.fault} does not happen to {', '.join(self.classes)}")
