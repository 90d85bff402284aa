"""Pods of which the core knows more than the watch has told: they were read, and were gone."""

from typing import Final

from k8s_scheduler.api.meta import PodUid

_MOST: Final = 1024


class ReadGone:
    """The last of them; the watch had told of most others before they were read."""

    def __init__(self) -> None:
        # Oldest first.
        self._uids: dict[PodUid, None] = {}

    def add(self, uid: PodUid) -> None:
        self._uids[uid] = None
        if len(self._uids) > _MOST:
            del self._uids[next(iter(self._uids))]

    def discard(self, uid: PodUid) -> None:
        self._uids.pop(uid, None)

    def clear(self) -> None:
        self._uids.clear()

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._uids
