"""Pods that were bound, as the API server said, and that the watch has not shown on their node.

        BindResult: bound ──▶ waiting ──seen bound, or gone──▶ (over)
                               │   ▲
                    30 s, then │   │ no answer: later, and later still
                    ever later ▼   │
                              asked ──PodRead──▶ told like a change; unbound: its room is given
                                                 back, and it is tried again

An assumed pod never expires: a room given back too early is filled twice. But a change that never
comes would keep room taken for ever. So a pod that waits for long is read, once and then ever less
often, and what was read is the truth about it.
"""

from typing import Final

import msgspec

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.engine.pods.in_flight import InFlightPod
from k8s_scheduler.core.messages.checkpoint import UnconfirmedEntry
from k8s_scheduler.core.messages.incoming import PodRead
from k8s_scheduler.core.messages.outgoing import Log, ReadPod, Severity, attempt_at
from k8s_scheduler.core.state.protocols import PlacedPods

# How long the watch may take to show a binding; with every reading twice as long, up to a limit.
CONFIRM_SECONDS: Final = 30.0
LONGEST_SECONDS: Final = 480.0


class Unconfirmed:
    """All of them, by pod, as checkpoints hold them."""

    def __init__(self, cache: PlacedPods, out: Outbox) -> None:
        self._cache = cache
        self._out = out
        # Those that were never asked about, first come first due; and those that were.
        self._new: dict[PodUid, UnconfirmedEntry] = {}
        self._old: dict[PodUid, UnconfirmedEntry] = {}

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def bound(self, flight: InFlightPod, *, now: float) -> None:
        """Begin to wait for a pod, unless it was seen on its node before the answer came."""
        if self._cache.is_assumed(flight.uid):
            self._new[flight.uid] = UnconfirmedEntry(
                **attempt_at(flight.pod, flight.queued.attempts),
                node=flight.node,
                due=now + CONFIRM_SECONDS,
                wait_seconds=CONFIRM_SECONDS,
                asked=False,
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
            self._ask(waiting, seconds=min(2 * waiting.wait_seconds, LONGEST_SECONDS), now=now)

    def doubt(self, *, now: float) -> None:
        """Ask about all of them now: the server's storage was set back to before some bindings."""
        for waiting in (*self._new.values(), *self._old.values()):
            self._ask(waiting, seconds=2 * CONFIRM_SECONDS, now=now)

    def _ask(self, waiting: UnconfirmedEntry, *, seconds: float, now: float) -> None:
        self._new.pop(waiting.uid, None)
        self._old[waiting.uid] = msgspec.structs.replace(
            waiting, asked=True, wait_seconds=seconds, due=now + seconds
        )
        question = ReadPod(
            uid=waiting.uid,
            namespace=waiting.namespace,
            name=waiting.name,
            attempt=waiting.attempt,
        )
        self._out.append(question)

    def of(self, answer: PodRead) -> UnconfirmedEntry | None:
        """Return the pod an answer is about; None if it is not waited for, or another attempt's."""
        waiting = self._old.get(answer.uid)
        return None if waiting is None or waiting.attempt != answer.attempt else waiting

    def entries(self) -> tuple[UnconfirmedEntry, ...]:
        return (*self._new.values(), *self._old.values())

    def restore(self, entry: UnconfirmedEntry) -> None:
        (self._old if entry.asked else self._new)[entry.uid] = entry


def found_in(answer: PodRead, waiting: UnconfirmedEntry) -> str:
    """Say in a word what reading a pod has shown."""
    if answer.pod is None:
        return "gone"
    node = answer.pod.spec.node_name
    if not node:
        return "unbound"
    return "bound" if node == waiting.node else "elsewhere"


def tell_read(waiting: UnconfirmedEntry, found: str) -> Log:
    """Return the line about a pod that was read, and what that has shown."""
    fields: dict[str, str | int] = {
        "pod": f"{waiting.namespace}/{waiting.name}",
        "node": waiting.node,
        "attempt": waiting.attempt,
        "found": found,
    }
    return Log(Severity.WARNING, "pod was not seen on the node it was bound to, read it", fields)
