"""A storage that is restored from an older snapshot, as etcd is from a backup.

    snapshot ─ ... ─▶ down: nobody is answered, every watch is cut
                        └▶ restored ─▶ up again: the API server knows nothing but the snapshot

Versions go on from the snapshot's, so numbers are given out a second time; or they are bumped, as
`etcdutl snapshot restore --bump-revision` does, and only what is stored is of the past. The server
is away for longer than `AWAY_SECONDS`: no real one is restored in less. Users, kubelets and others
act on it as soon as it is restored, before daemons can: versions may have overtaken theirs by then.

Where Leases live elsewhere they are not restored with it.
"""

from dataclasses import dataclass
from typing import Final

from k8s_scheduler.kube.watch.set_back import AWAY_SECONDS
from tests.fakes.api import _Stored
from tests.fakes.watch import Change
from tests.simulation import documents as doc
from tests.simulation.cluster import Cluster
from tests.simulation.history import SetBack
from tests.simulation.server import LEASES, NODES, PODS, ModelServer

DOWN_SECONDS: Final = AWAY_SECONDS + 0.5
_BUMPED_BY: Final = 1000


@dataclass(frozen=True, slots=True)
class _Snapshot:
    objects: dict[str, dict[str, _Stored]]
    version: int


class Backups:
    """Takes snapshots of a model server, and restores it from the last one."""

    def __init__(self, server: ModelServer, cluster: Cluster) -> None:
        self._server = server
        self._cluster = cluster
        self._snapshot: _Snapshot | None = None
        self._twin = ""

    def take(self, *, twin: bool) -> None:
        """Take a snapshot; what is stored is never changed in place.

        With a twin, some node is cordoned right after it. The first write after the restore makes
        that node large instead: the same version of the same node, with other content.
        """
        objects = {path: dict(found) for path, found in self._server._objects.items()}
        self._snapshot = _Snapshot(objects, self._server.version)
        nodes = [
            node for node in self._server.every(NODES) if not node["spec"].get("unschedulable")
        ]
        if twin and nodes:
            self._twin = f"{NODES}/{nodes[-1]['metadata']['name']}"
            self._server.patch(self._twin, {"spec": {"unschedulable": True}})

    def restore(self, *, bumped: bool) -> None:
        """Let the server be as it was at the last snapshot."""
        snapshot, server = self._snapshot, self._server
        if snapshot is None:
            return
        objects = {path: dict(found) for path, found in snapshot.objects.items()}
        if server.leases_elsewhere:
            objects[LEASES] = server._objects.get(LEASES, {})
        version = server.version + _BUMPED_BY if bumped else snapshot.version
        server.set_back(objects, version)
        holder = server.holder
        truth = [server.every(path) for path in (PODS, NODES)]
        server.history.set_back(SetBack(server.loop.now, *truth, version=version, holder=holder))
        if self._twin:
            self._server.patch(self._twin, {"status": {"allocatable": {"cpu": "9000m"}}})
            self._cluster.create_pod(doc.pod("large", milli_cpu=6000, app="x"))
        for path, found in objects.items():
            if path != LEASES:
                for stored in tuple(found.values()):
                    change = Change("ADDED", stored.location, version, stored.content, None)
                    self._cluster.resume(change)
