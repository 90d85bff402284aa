"""What the model server has seen and done, in order: all that the auditor may look at.

Each entry is also part of the trace, whose hash tells whether two runs were the same.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.fakes.transport import Json, Request
from tests.fakes.watch import Change

# How a call ended for its client when no status came back.
NOT_SENT = "not sent"
UNKNOWN = "unknown"


@dataclass(slots=True, eq=False)
class Call:
    """A request of a daemon, from its sending to what its sender learnt of it."""

    number: int
    client: str
    request: Request
    sent_at: float
    executed_at: float | None = None
    status: int = 0
    # What the server changed for it.
    changes: list[Change] = field(default_factory=list)
    # A status, UNKNOWN, NOT_SENT; None as long as the client has learnt nothing.
    answer: int | str | None = None
    # What the auditor takes it for.
    kind: str = ""
    # A list: whether it is the first page, its objects, its version, whether it is the last page.
    page: "tuple[bool, list[Json], int, bool] | None" = None

    @property
    def done(self) -> bool:
        """Whether the server did what was asked."""
        return 200 <= self.status < 300

    def __str__(self) -> str:
        return f"{self.client} {self.request.method} {self.request.path} (call {self.number})"


@dataclass(frozen=True, slots=True)
class Sent:
    at: float
    call: Call


@dataclass(frozen=True, slots=True)
class Executed:
    at: float
    call: Call


@dataclass(frozen=True, slots=True)
class Answered:
    at: float
    call: Call


@dataclass(frozen=True, slots=True)
class Changed:
    at: float
    change: Change
    by: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A client has read an event of a watch; `what` is its type, LIST or LISTED."""

    at: float
    client: str
    list_path: str
    what: str
    content: Json
    version: int


@dataclass(frozen=True, slots=True)
class Happened:
    """Something happened to a process: started, killed, frozen, thawed, stopping, exit N, ..."""

    at: float
    client: str
    what: str
    detail: str = ""


Entry: TypeAlias = Sent | Executed | Answered | Changed | Shown | Happened


class History:
    """Takes entries down."""

    def __init__(self, *, keep_lines: bool = False) -> None:
        self.entries: list[Entry] = []
        self.calls: list[Call] = []
        self.lines: list[str] | None = [] if keep_lines else None
        self.faults: dict[str, int] = {}
        self._digest = hashlib.blake2b(digest_size=16)

    def sent(self, at: float, client: str, request: Request) -> Call:
        call = Call(len(self.calls), client, request, at)
        self.calls.append(call)
        self.entries.append(Sent(at, call))
        self._trace(at, "sent", call, request.body)
        return call

    def executed(self, at: float, call: Call, status: int) -> None:
        call.executed_at, call.status = at, status
        self.entries.append(Executed(at, call))
        self._trace(at, "done", call, status)

    def answered(self, at: float, call: Call, answer: int | str) -> None:
        if call.answer is None:
            call.answer = answer
            self.entries.append(Answered(at, call))
            self._trace(at, "answer", call, answer)

    def changed(self, at: float, change: Change, by: str) -> None:
        self.entries.append(Changed(at, change, by))
        self._trace(at, change.kind, by, change.location.path, change.version)

    def shown(
        self, at: float, client: str, list_path: str, *, what: str, content: Json, version: int
    ) -> None:
        self.entries.append(Shown(at, client, list_path, what, content, version))
        self._trace(at, "shown", client, list_path, what, version)

    def happened(self, at: float, client: str, what: str, detail: str = "") -> None:
        self.entries.append(Happened(at, client, what, detail))
        self._trace(at, client, what)

    def fault(self, kind: str) -> None:
        """Count a fault that was injected."""
        self.faults[kind] = self.faults.get(kind, 0) + 1

    @property
    def trace(self) -> str:
        """The hash of everything so far."""
        return self._digest.hexdigest()

    def _trace(self, at: float, *what: Any) -> None:
        line = f"{at:.6f} " + " ".join(map(str, what))
        self._digest.update(line.encode())
        if self.lines is not None:
            self.lines.append(line)
