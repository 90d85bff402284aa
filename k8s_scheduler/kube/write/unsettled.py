"""Binding requests without an answer that may yet be carried out, although their bind has ended.

A bind in doubt ends as soon as its pod is seen bound or gone: what is still on its way is refused
then. That holds only while the storage is the same. A restore from a snapshot of before makes the
pod one that can be bound, and a request that a proxy has kept binds it to a node whose room may
have been given to others. So ended binds that were in doubt are remembered until nothing of them
can land any more (`bind_machine.py`): as long as a bind that was given up is read.

Most binds are never in doubt, and cost nothing here.
"""

from k8s_scheduler.api.meta import PodUid


class Unsettled:
    """Ended binds with requests that may yet land, by pod."""

    def __init__(self, settle_seconds: float) -> None:
        self._settle_seconds = settle_seconds
        # When nothing of them can land any more; about in the order of that.
        self._until: dict[PodUid, float] = {}

    def add(self, uid: PodUid, since: float, *, now: float) -> None:
        """Remember a bind that has ended; its last request without an answer was `since`."""
        while self._until and self._until[first := next(iter(self._until))] <= now:
            del self._until[first]
        self._until.pop(uid, None)
        self._until[uid] = since + self._settle_seconds

    def has(self, uid: PodUid, *, now: float) -> bool:
        """Return whether a request of an ended bind may yet bind the pod."""
        until = self._until.get(uid)
        return until is not None and now < until
