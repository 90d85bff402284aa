"""What the model server has seen and done, in order: all that the auditor may look at.

On demand each entry is also a line of the trace, whose hash tells whether two runs were the same.
"""

import hashlib
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

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
    # How far the storage of pods and nodes had come when it was carried out.
    storage_version: int = 0
    # A list: whether it is the first page, its objects, its version, whether it is the last page.
    page: "tuple[bool, list[Json], int, bool] | None" = None

    @property
    def done(self) -> bool:
        """Whether the server did what was asked."""
        return 200 <= self.status < 300

    def __str__(self) -> str:
        return f"{self.client} {self.request.method} {self.request.path} (call {self.number})"


# Entries are many, are never part of a cycle, and are never changed.


class Sent(msgspec.Struct, frozen=True, gc=False):
    at: float
    call: Call


class Executed(msgspec.Struct, frozen=True, gc=False):
    at: float
    call: Call


class Answered(msgspec.Struct, frozen=True, gc=False):
    at: float
    call: Call


class Changed(msgspec.Struct, frozen=True, gc=False):
    at: float
    change: Change
    by: str


class Shown(msgspec.Struct, frozen=True, gc=False):
    """A client has read an event of a watch; `what` is its type, LIST or LISTED."""

    at: float
    client: str
    list_path: str
    what: str
    content: Json
    version: int


class Happened(msgspec.Struct, frozen=True, gc=False):
    """Something happened to a process: started, killed, frozen, thawed, stopping, exit N, ..."""

    at: float
    client: str
    what: str
    detail: str = ""


class SetBack(msgspec.Struct, frozen=True, gc=False):
    """The storage was restored from a snapshot: what there is now, and who holds the lease."""

    at: float
    pods: list[Json]
    nodes: list[Json]
    version: int
    holder: str


Entry: TypeAlias = Sent | Executed | Answered | Changed | Shown | Happened | SetBack


class History:
    """Takes entries down."""

    def __init__(self, *, traced: bool = False) -> None:
        self.entries: list[Entry] = []
        self.calls: list[Call] = []
        # Every entry as a line, if anybody wants to read or compare them.
        self.lines: list[str] | None = [] if traced else None
        self.faults: dict[str, int] = {}

    def sent(self, at: float, client: str, request: Request) -> Call:
        call = Call(len(self.calls), client, request, at)
        self.calls.append(call)
        self.entries.append(Sent(at, call))
        if self.lines is not None:
            self.lines.append(f"{at:.6f} sent {call} {request.body!r}")
        return call

    def executed(self, at: float, call: Call, status: int) -> None:
        call.executed_at, call.status = at, status
        self.entries.append(Executed(at, call))
        if self.lines is not None:
            self.lines.append(f"{at:.6f} done {call} {status}")

    def answered(self, at: float, call: Call, answer: int | str) -> None:
        if call.answer is None:
            call.answer = answer
            self.entries.append(Answered(at, call))
            if self.lines is not None:
                self.lines.append(f"{at:.6f} answer {call} {answer}")

    def changed(self, at: float, change: Change, by: str) -> None:
        self.entries.append(Changed(at, change, by))
        if self.lines is not None:
            path = change.location.path
            self.lines.append(f"{at:.6f} {change.kind} {by} {path} {change.version}")

    def shown(
        self, at: float, client: str, list_path: str, *, what: str, content: Json, version: int
    ) -> None:
        self.entries.append(Shown(at, client, list_path, what, content, version))
        if self.lines is not None:
            self.lines.append(f"{at:.6f} shown {client} {list_path} {what} {version}")

    def happened(self, at: float, client: str, what: str, detail: str = "") -> None:
        self.entries.append(Happened(at, client, what, detail))
        if self.lines is not None:
            self.lines.append(f"{at:.6f} {client} {what}")

    def set_back(self, entry: SetBack) -> None:
        self.entries.append(entry)
        if self.lines is not None:
            self.lines.append(f"{entry.at:.6f} set back to {entry.version}")

    def fault(self, kind: str) -> None:
        """Count a fault that was injected."""
        self.faults[kind] = self.faults.get(kind, 0) + 1

    @property
    def trace(self) -> str:
        """The hash of everything so far; empty if no lines are kept."""
        if self.lines is None:
            return ""
        return hashlib.blake2b("\n".join(self.lines).encode(), digest_size=16).hexdigest()
