"""Binding requests without an answer that may yet be carried out, although their bind has ended.

A bind in doubt ends as soon as its pod is seen bound or gone: the server then refuses requests that
are still on their way. That holds only while the storage is the same. A restore from an earlier
snapshot makes the pod unbound again, and a request that a proxy has kept binds it to a node where
the room may be taken by now. So ended binds that were in doubt are remembered until none of their
requests can land any more (`bind_machine.py`): as long as a bind that was given up is read.

Most binds are never in doubt, and cost nothing here.
"""

from k8s_scheduler.api.meta import PodUid


class Unsettled:
    """Ended binds with requests that may yet land, by pod."""

    def __init__(self, settle_seconds: float) -> None:
        self._settle_seconds = settle_seconds
        # When no request can land any more; roughly in that order.
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
