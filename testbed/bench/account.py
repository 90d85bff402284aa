"""What the API server wrote down about a run: when each pod came, was bound, and had its event.

Nobody is asked and nobody watches: the log is the same for every scheduler and costs the API server
the same. A line is written when a request has been answered, with its times to the microsecond. The
client may have its answer before the line is there, so lines can be out of order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from testbed.bench.scenario_pods import CHURN
from testbed.installation import NAMESPACE, SERVICE_ACCOUNT

# Metadata is enough: who did what to whom, when, and how it ended. Only of an event it does not say
# what it is about, and there are others than `Scheduled`.
POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted", "Panic"],
    "omitManagedFields": True,
    "rules": [
        {
            "level": "Request",
            "verbs": ["create"],
            "resources": [
                {"group": "", "resources": ["events"]},
                {"group": "events.k8s.io", "resources": ["events"]},
            ],
        },
        {
            "level": "Metadata",
            "verbs": ["create"],
            "resources": [{"group": "", "resources": ["pods", "pods/binding"]}],
        },
        {
            "level": "Metadata",
            "verbs": ["patch", "update", "delete"],
            "resources": [{"group": "", "resources": ["pods", "pods/status"]}],
        },
        {"level": "None"},
    ],
}

# Who the contestants log in as; everybody else is the benchmark itself or a controller.
CONTESTANT = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"
_CREATED = 201
_SCHEDULED = "Scheduled"


class _Target(msgspec.Struct, rename="camel"):
    resource: str = ""
    subresource: str = ""
    name: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _User(msgspec.Struct):
    username: str = ""


class _Body(msgspec.Struct):
    """Of an event that is created; of anything else the log has no body."""

    reason: str = ""


class _Line(msgspec.Struct, rename="camel"):
    verb: str
    stage_timestamp: datetime
    request_received_timestamp: datetime | None = None
    user: _User = msgspec.field(default_factory=_User)
    request_object: _Body = msgspec.field(default_factory=_Body)
    object_ref: _Target = msgspec.field(default_factory=_Target)
    response_status: _Status = msgspec.field(default_factory=_Status)


_decode = msgspec.json.Decoder(_Line).decode


@dataclass(slots=True)
class Account:
    """What is known of a run so far; times are in seconds since the epoch, by pod."""

    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    # When the API server got the Binding: the scheduler decided in about this order.
    asked: dict[str, float] = field(default_factory=dict)
    # Of the event `Scheduled`; its name begins with the pod's.
    told: dict[str, float] = field(default_factory=dict)
    # Requests by what they were, whatever came of them.
    requests: dict[str, int] = field(default_factory=dict)
    # How many of them were the contestant's, and not about what comes and goes all the time: while
    # it grows the contestant gets on.
    work: int = 0
    # Bindings that were refused, or of which nobody heard the answer.
    refused: int = 0
    # When such a Binding of a pod ended. It may have been executed all the same: then its scheduler
    # reads the pod, finds it bound and asks for no other; the event is the first sign of it.
    doubtful: dict[str, float] = field(default_factory=dict)

    def take(self, line: bytes) -> None:
        """Take in a line of the log."""
        entry = _decode(line)
        target = entry.object_ref
        what = target.resource + ("/" + target.subresource if target.subresource else "")
        kind = f"{entry.verb} {what}"
        self.requests[kind] = self.requests.get(kind, 0) + 1
        if entry.user.username == CONTESTANT and not target.name.startswith(CHURN):
            self.work += 1
        is_created = entry.response_status.code == _CREATED
        when = entry.stage_timestamp.timestamp()
        if kind == "create pods/binding":
            received = entry.request_received_timestamp
            self.asked[target.name] = when if received is None else received.timestamp()
            if is_created:
                self.bound[target.name] = when
            else:
                self.refused += 1
                self.doubtful[target.name] = when
                self._settle(target.name)
        elif kind == "create pods" and is_created:
            self.created[target.name] = when
        elif kind == "create events" and is_created and entry.request_object.reason == _SCHEDULED:
            pod = target.name.rpartition(".")[0]
            self.told[pod] = when
            self._settle(pod)

    def _settle(self, pod: str) -> None:
        """Take a doubtful Binding for executed, if its scheduler says that it was."""
        if pod in self.told and pod in self.doubtful:
            self.bound.setdefault(pod, self.doubtful[pod])


class LogReader:
    """Reads a log while it is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._rest = b""
        self.account = Account()

    def catch_up(self) -> Account:
        """Take in what was written since last asked; a line that is still being written waits."""
        for line in self._lines():
            self.account.take(line)
        return self.account

    def _lines(self) -> Iterator[bytes]:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            found = file.read()
        self._position += len(found)
        *lines, self._rest = (self._rest + found).split(b"\n")
        yield from lines
