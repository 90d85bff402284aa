"""Bugs about a restored storage, and about Leases that live in another one; see `planted.py`."""

from typing import Any

from k8s_scheduler.api.meta import key_of
from k8s_scheduler.app.driver.undone import Undone
from k8s_scheduler.app.lifecycle import Daemon
from k8s_scheduler.app.recovery.restored import Restored
from k8s_scheduler.kube.resources import has_reached
from k8s_scheduler.kube.watch.list_tickets import Progress
from k8s_scheduler.kube.watch.store import Store

Plant = tuple[Any, str, Any]


def set_back_ignored() -> Plant:
    """A lower version is noticed, and nothing is listed anew."""

    def doubt(self: Progress) -> None:
        return None

    return Progress, "doubt", doubt


def overtaken_versions() -> Plant:
    """Versions that are not lower count as proof that nothing was set back."""

    def returned(self: Restored, resource: str) -> None:
        return None

    return Restored, "returned", returned


def undone_binding_ignored() -> Plant:
    """A pod that has no node any more is told of as it is: to the core, an older version."""

    def come_again(self: Any, pod: Any) -> None:
        self._tell(pod.metadata.uid, pod)

    return Undone, "_come_again", come_again


def equal_version_is_equal() -> Plant:
    """What has the same version has the same content."""

    def put(self: Any, new: Any) -> str:
        key = key_of(new.metadata)
        old = self._objects.get(key)
        if old is not None and old.metadata.uid != new.metadata.uid:
            self.remove(key)
            old = None
        elif old is not None and old.metadata.resource_version == new.metadata.resource_version:
            return key
        self._objects[key] = new
        self._tell(key, old, new)
        return key

    return Store, "put", put


def barrier_by_lease() -> Plant:
    """A new leader has seen enough when its caches have reached the version of its Lease."""

    async def take_over(self: Any, elector: Any, marked: Any, **_newborn: Any) -> None:
        await self._fill_caches()
        for informer in (self._graph.nodes, self._graph.pods):
            if not has_reached(informer.resource_version, elector._claim.observed.version):
                await informer.relist()
        self._graph.pump.quarantine(marked)
        self._decide()

    return Daemon, "_take_over", take_over


RESTORE_PLANTS = (
    set_back_ignored,
    overtaken_versions,
    undone_binding_ignored,
    equal_version_is_equal,
    barrier_by_lease,
)
