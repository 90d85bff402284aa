"""Bringing the store up to date with a complete list, as a diff.

    put / keep / remove …  ──►  finish
    (as the list arrives)       (what the list did not name is deleted)

Adds and updates are applied while the list still arrives; deletes come last, because only a
complete list can say that something is gone. So a list that fails half-way leaves no wrong state:
what it showed is stored, and nothing was deleted. The next list, with a `Relist` of its own, does
the rest.

An object that cannot be decoded is present all the same, so an older version of it stays (see
`Store.keep`). It goes when the server deletes it or when a list no longer names it. Only an object
whose very name cannot be read is not recognised; then the older version goes with the list.

An object that is older in a consistent list than in the store shows that the storage of the server
was restored from a snapshot (`went_back`). What the list shows is the truth all the same.
"""

from typing import Final, Generic

from k8s_scheduler.api.meta import key_of
from k8s_scheduler.kube.resources import T, is_newer
from k8s_scheduler.kube.watch.store import Store
from k8s_scheduler.lib.slices import Slice

_CHECK_EVERY: Final = 16


class Relist(Generic[T]):
    """One pass over everything the server has."""

    def __init__(self, store: Store[T]) -> None:
        self._store = store
        self._present: set[str] = set()
        # The known and the listed version of the first object that the list shows older.
        self.went_back: tuple[str, str] | None = None

    def put(self, new: T) -> None:
        if self.went_back is None:
            self._compare(new)
        self._present.add(self._store.put(new))

    def _compare(self, new: T) -> None:
        old = self._store.objects.get(key_of(new.metadata))
        if old is None or old.metadata.uid != new.metadata.uid:
            return
        known, listed = old.metadata.resource_version, new.metadata.resource_version
        if known != listed and is_newer(known, listed):
            self.went_back = (known, listed)

    def keep(self, key: str, *, uid: str) -> None:
        self._store.keep(key, uid=uid)
        self._present.add(key)

    def remove(self, key: str) -> None:
        self._store.remove(key)

    async def finish(self, work: Slice) -> None:
        """Delete what the list did not name; only for a list that is complete."""
        # Taken from the end and let go one by one: dropping all keys together at the end gives
        # their memory back in one go, which takes longer than the work itself.
        keys = list(self._store.objects)
        keys.reverse()
        while keys:
            key = keys.pop()
            if key not in self._present:
                self._store.remove(key)
            if len(keys) % _CHECK_EVERY == 0 and work.full():
                await work.breathe()
