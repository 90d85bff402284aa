"""At most so many victims a minute: a bucket that fills with time, as messages tell it.

It holds a minute's worth, so that many may be evicted at once after a quiet minute. One preemption
with more victims than that waits for a full bucket, and what it takes too much is made up for
afterwards. A limit of 0 is none, as in kube-scheduler.
"""

from typing import Final

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.messages.checkpoint import VictimLimitEntry

_MINUTE: Final = 60.0


class VictimLimit:
    """How many pods may still be evicted, and which pods wait for more."""

    def __init__(self, per_minute: int = 0) -> None:
        self._per_minute = per_minute
        self._left = float(per_minute)
        self._at: float | None = None
        # By pod: how many victims it needs. In the order in which they were put off.
        self._waiting: dict[PodUid, int] = {}

    @property
    def per_minute(self) -> int:
        return self._per_minute

    def change(self, per_minute: int, *, now: float) -> None:
        """Go by another limit; what was used up of the old one stays used up."""
        if per_minute == self._per_minute:
            return
        self._fill(now)
        used = self._per_minute - self._left if self._per_minute else 0.0
        self._per_minute = per_minute
        self._left = per_minute - used

    def take(self, uid: PodUid, victims: int, *, now: float) -> bool:
        """Evict so many for a pod if that is allowed; otherwise it waits for `due`."""
        self._waiting.pop(uid, None)
        if not self._per_minute:
            return True
        self._fill(now)
        if not self._allows(victims):
            self._waiting[uid] = victims
            return False
        self._left -= victims
        return True

    def waits(self, uid: PodUid) -> bool:
        return uid in self._waiting

    @property
    def waiting(self) -> tuple[PodUid, ...]:
        return tuple(self._waiting)

    def drop(self, uid: PodUid) -> None:
        """Let a pod wait no more: it is gone, or does not need it."""
        self._waiting.pop(uid, None)

    def due(self, uids: tuple[PodUid, ...], *, now: float) -> list[PodUid]:
        """Return the first of some pods that the limit allows, together; they wait no more."""
        self._fill(now)
        found: list[PodUid] = []
        needed = 0
        for uid in uids:
            needed += self._waiting[uid]
            if self._per_minute and not self._allows(needed):
                break
            found.append(uid)
        for uid in found:
            del self._waiting[uid]
        return found

    def _allows(self, victims: int) -> bool:
        return self._left >= min(victims, self._per_minute)

    def _fill(self, now: float) -> None:
        if self._at is not None and now > self._at:
            gained = (now - self._at) * self._per_minute / _MINUTE
            self._left = min(self._left + gained, float(self._per_minute))
        self._at = now if self._at is None else max(now, self._at)

    # Checkpoints

    def entry(self) -> VictimLimitEntry | None:
        """Return it as checkpoint data; None if there is nothing to tell."""
        if not self._per_minute and not self._waiting:
            return None
        return VictimLimitEntry(self._left, self._at, tuple(self._waiting.items()))

    def restore(self, entry: VictimLimitEntry | None) -> None:
        if entry is not None:
            self._left, self._at = entry.left, entry.at
            self._waiting = dict(entry.waiting)
