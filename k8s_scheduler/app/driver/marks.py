"""Which pods may end a process, remembered where the next leader finds it: on the Lease.

    a decision lasts LONG_SECONDS ─▶ marked as being tried by us ─┬─ it ends: the mark is removed
                                                                  └─ we end: the mark stays
    take-over: a mark by a process that does not lead any more ─▶ one death more, into quarantine
    a pod in quarantine: marked as being tried *before* it is ─▶ tried ─▶ the mark is removed

A process can end by a signal, out of memory, by the watchdog, or by losing the Lease because
one decision takes too long; at that moment its event loop runs nothing. So a thread of its own
(`sentinel`) writes what is wanted here. This object is shared between the two threads: the loop
changes it, the sentinel reads `wanted` and sets `written`, each in single assignments.
"""

import logging
from collections.abc import Callable, Container, Mapping
from typing import Final

import msgspec

from k8s_scheduler.api.meta import PodUid, key_of
from k8s_scheduler.core.inspection import QueuedPod

logger = logging.getLogger(__name__)

NOTE: Final = "k8s-scheduler.io/pods-being-tried"
# Decisions take a fraction of a millisecond, the longest that are meant to be some tens.
LONG_SECONDS: Final = 0.25
# The Lease is read by every replica twice a second: notes on it have to be short.
MOST_MARKS: Final = 16


class PodMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """One pod: how many processes ended while they tried it, and which one tries it now."""

    pod: str = ""
    deaths: int = 0
    by: str = ""


Table = Mapping[PodUid, PodMark]
_decode: Final = msgspec.json.Decoder(dict[PodUid, PodMark]).decode


def encode(marks: Table) -> str:
    """Return marks as the note's text; empty if there are none."""
    return msgspec.json.encode(marks).decode() if marks else ""


class Marks:
    """The marks of one process."""

    def __init__(self, identity: str, clock: Callable[[], float]) -> None:
        self._identity = identity
        self._clock = clock
        self._attempt: tuple[QueuedPod, float] | None = None
        self._quarantined: dict[PodUid, PodMark] = {}
        self._announced: PodUid | None = None
        # What the Lease says, as far as is known.
        self.written: Table = {}

    # The event loop

    def begin(self, queued: QueuedPod) -> None:
        """Take note of the decision that begins; the one before it has ended."""
        self._attempt = (queued, self._clock())

    def end(self) -> None:
        """Take note that the decision has ended: the process has survived it."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None and self._quarantined:
            self._forget(attempt[0].uid)

    def take_over(self, text: str) -> dict[PodUid, int]:
        """Take what the last leader left behind; return how many processes each pod has ended."""
        try:
            found = _decode(text) if text else {}
        except (msgspec.MsgspecError, RecursionError) as error:
            fields = {"annotation": NOTE, "error": str(error)}
            logger.warning("Cannot read which pods were being tried", extra={"fields": fields})
            found = {}
        counted = {
            uid: PodMark(mark.pod, mark.deaths + (mark.by not in ("", self._identity)))
            for uid, mark in found.items()
        }
        self._quarantined = {uid: mark for uid, mark in counted.items() if mark.deaths > 0}
        self.written = found
        return self.deaths

    @property
    def deaths(self) -> dict[PodUid, int]:
        """How many processes each pod has ended that is in quarantine."""
        return {uid: mark.deaths for uid, mark in self._quarantined.items()}

    def keep(self, uids: Container[PodUid]) -> None:
        for uid in [uid for uid in self._quarantined if uid not in uids]:
            self._forget(uid)

    def announce(self, uid: PodUid) -> bool:
        """Say that a pod in quarantine is about to be tried; return whether that is written."""
        self._announced = uid
        mark = self.written.get(uid)
        return mark is not None and mark.by == self._identity

    def seen(self, text: str) -> None:
        """Take note of what the Lease says after a write of ours.

        One that was deleted and made again says nothing: then the sentinel writes everything anew.
        If this comes late, it writes once more than it would have to.
        """
        if not text and self.written:
            self.written = {}

    def _forget(self, uid: PodUid) -> None:
        # Another dict: the sentinel may be reading this one.
        self._quarantined = {u: mark for u, mark in self._quarantined.items() if u != uid}
        if self._announced == uid:
            self._announced = None

    # The sentinel

    def wanted(self) -> Table:
        attempt, marks = self._attempt, dict(self._quarantined)
        tried = self._announced
        if attempt is not None:
            queued, since = attempt
            if queued.uid in marks or self._clock() - since >= LONG_SECONDS:
                tried = queued.uid
                marks.setdefault(tried, PodMark(key_of(queued.pod.metadata)))
        if tried in marks:
            marks[tried] = msgspec.structs.replace(marks[tried], by=self._identity)
        # The pod being tried comes first, then those that have ended the most processes.
        kept = sorted(marks, key=lambda uid: (uid != tried, -marks[uid].deaths))[:MOST_MARKS]
        return {uid: marks[uid] for uid in kept}
