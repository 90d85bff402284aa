"""Pods that were bound, as the API server said, and that the watch has not shown on their node.

        BindResult: bound ──▶ waiting ──seen bound, or gone──▶ (over)
                               │   ▲
                    30 s, then │   │ no answer: later, and later still
                    ever later ▼   │
                              asked ──PodRead──▶ told like a change; unbound: its room is given
                                                 back, and it is tried again

An assumed pod never expires: a room given back too early is filled twice. But a change that never
comes would keep room taken for ever. So whoever waits for long is read, once and then ever less
often, and what was read is the truth about it.
"""

from typing import Final

import msgspec

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.core.engine.in_flight import Flight
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.messages.checkpoint import UnconfirmedEntry
from k8s_scheduler.core.messages.incoming import PodRead
from k8s_scheduler.core.messages.outgoing import Log, ReadPod, Severity
from k8s_scheduler.core.state.protocols import PlacedPods

# How long the watch may take to show a binding; with every reading twice as long, up to a limit.
CONFIRM_SECONDS: Final = 30.0
LONGEST_SECONDS: Final = 480.0


class Waiting(msgspec.Struct):
    """One of them."""

    uid: PodUid
    namespace: str
    name: str
    attempt: int
    node: NodeName
    due: float
    wait_seconds: float = CONFIRM_SECONDS
    asked: bool = False

    def entry(self) -> UnconfirmedEntry:
        """Return this as checkpoint data."""
        return UnconfirmedEntry(
            uid=self.uid,
            namespace=self.namespace,
            name=self.name,
            attempt=self.attempt,
            node=self.node,
            due=self.due,
            wait_seconds=self.wait_seconds,
            asked=self.asked,
        )


class Unconfirmed:
    """All of them, by pod."""

    def __init__(self, cache: PlacedPods, out: Outbox) -> None:
        self._cache = cache
        self._out = out
        # Those that were never asked about, first come first due; and those that were.
        self._new: dict[PodUid, Waiting] = {}
        self._old: dict[PodUid, Waiting] = {}

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def bound(self, flight: Flight, *, now: float) -> None:
        """Begin to wait for a pod, unless it was seen on its node before the answer came."""
        if self._cache.is_assumed(flight.uid):
            metadata = flight.pod.metadata
            self._new[flight.uid] = Waiting(
                flight.uid,
                metadata.namespace,
                metadata.name,
                flight.queued.attempts,
                flight.node,
                due=now + CONFIRM_SECONDS,
            )

    def seen(self, uid: PodUid) -> None:
        """Wait no longer: the watch has shown the pod bound, or gone."""
        if self._new.pop(uid, None) is None:
            self._old.pop(uid, None)

    def due(self, *, now: float) -> None:
        """Ask about the pods that have waited for too long."""
        ripe = []
        for waiting in self._new.values():
            if waiting.due > now:
                break
            ripe.append(waiting)
        ripe += [waiting for waiting in self._old.values() if waiting.due <= now]
        for waiting in ripe:
            self._new.pop(waiting.uid, None)
            self._old[waiting.uid] = waiting
            waiting.asked = True
            waiting.wait_seconds = min(2 * waiting.wait_seconds, LONGEST_SECONDS)
            waiting.due = now + waiting.wait_seconds
            question = ReadPod(
                uid=waiting.uid,
                namespace=waiting.namespace,
                name=waiting.name,
                attempt=waiting.attempt,
            )
            self._out.append(question)

    def doubt(self, *, now: float) -> None:
        """Ask about all of them now: the server's storage was set back to before some bindings."""
        for waiting in (*self._new.values(), *self._old.values()):
            waiting.due = now
            waiting.wait_seconds = CONFIRM_SECONDS
        self.due(now=now)

    def of(self, answer: PodRead) -> Waiting | None:
        """Return who an answer is about; None if it is not waited for, or another attempt's."""
        waiting = self._old.get(answer.uid)
        if waiting is None or not waiting.asked or waiting.attempt != answer.attempt:
            return None
        return waiting

    def entries(self) -> tuple[UnconfirmedEntry, ...]:
        """Return all of them as checkpoint data."""
        return tuple(w.entry() for part in (self._new, self._old) for w in part.values())

    def restore(self, entry: UnconfirmedEntry) -> None:
        """Take what `entry` recorded."""
        waiting = Waiting(
            entry.uid,
            entry.namespace,
            entry.name,
            entry.attempt,
            entry.node,
            due=entry.due,
            wait_seconds=entry.wait_seconds,
            asked=entry.asked,
        )
        (self._old if entry.asked else self._new)[entry.uid] = waiting


def found_in(answer: PodRead, waiting: Waiting) -> str:
    """Say in a word what reading a pod has shown."""
    if answer.pod is None:
        return "gone"
    node = answer.pod.spec.node_name
    if not node:
        return "unbound"
    return "bound" if node == waiting.node else "elsewhere"


def tell_read(waiting: Waiting, found: str) -> Log:
    """Return the line about a pod that was read, and what that has shown."""
    fields: dict[str, str | int] = {
        "pod": f"{waiting.namespace}/{waiting.name}",
        "node": waiting.node,
        "attempt": waiting.attempt,
        "found": found,
    }
    return Log(Severity.WARNING, "pod was not seen on the node it was bound to, read it", fields)
