"""The tables of what decisions depend on, and the logs of what changed in them.

Nodes, pods that take room on them, other objects and promises to pods are changed only here and in
the object store, so only these write the two logs. `facts` says which facts of which rows changed,
for evaluations that are kept; `changes` says it in the words of cluster events, for parked pods.
When a pod takes room, and until when, `cache` decides.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod, is_terminating
from k8s_scheduler.api.resources import PODS as POD_SLOTS
from k8s_scheduler.api.resources import Requests
from k8s_scheduler.core.state.amounts.overdrawn import Overdrawn
from k8s_scheduler.core.state.counts.pod_counter import Crowd
from k8s_scheduler.core.state.delta import Delta, PlacedPod
from k8s_scheduler.core.state.news.changes import Change, ChangeLog
from k8s_scheduler.core.state.news.facts import (
    ALL_OF_A_NODE,
    PODS,
    PORTS,
    ROOM,
    VOLUMES,
    FactLog,
    node_change,
)
from k8s_scheduler.core.state.nodes.node_table import NodeTable
from k8s_scheduler.core.state.objects import ObjectStore
from k8s_scheduler.core.state.pods.nominations import Nominations
from k8s_scheduler.core.state.pods.pod_index import Placed, PodIndex
from k8s_scheduler.core.state.rows import NodeRow, RowVersions
from k8s_scheduler.core.state.volumes.by_class import OffersByClass
from k8s_scheduler.core.state.volumes.users_by_row import VolumeUsers
from k8s_scheduler.lib.hollow import compact

# Read once: looking up an enum's member is slow, and this is done for every pod.
_DELETED: Final = Change.ASSIGNED_POD_DELETE


class ClusterState:
    """Nodes, the pods on them, and everything else that decisions depend on."""

    def __init__(self) -> None:
        self.changes = ChangeLog()
        self.facts = FactLog()
        self.nodes = NodeTable()
        self.pods = PodIndex(self.nodes.labels)
        self.objects = ObjectStore(self.changes, self.facts)
        self.objects.listen(self._object_changed)
        self.volumes = VolumeUsers(self.objects)
        self.offers = OffersByClass(self.objects)
        self.nominations = Nominations()
        self._pods: dict[PodUid, Placed] = {}
        # The same, in the order they came.
        self._by_row: dict[NodeRow, dict[PodUid, Placed]] = {}
        # Of the pods on each row.
        self._pods_versions = RowVersions()
        # By row: the namespaces of its pods, as of a version. Each preemption asks for many rows.
        self._namespaces: dict[NodeRow, tuple[int, dict[str, None]]] = {}
        self._assumed_count = 0

    # Nodes

    def put_node(self, node: Node) -> None:
        """Add a node or take its new version; a bad one raises QuantityError, changing nothing."""
        row, facts = self.nodes.put_node(node)
        if facts:
            self.facts.note(row, facts)
        if change := node_change(facts):
            self.changes.note(row, change)

    def remove_node(self, name: NodeName) -> None:
        """Take a node away; its pods stay counted until they are gone themselves."""
        row = self.nodes.remove_node(name)
        if row is not None:
            self.facts.note(row, ALL_OF_A_NODE)
            self.changes.note(row, Change.NODE_DELETE)

    def recount(self, row: NodeRow) -> bool:
        """Add up anew what the pods on a row take; return whether it had been wrong."""
        here = self._by_row.get(row, {})
        if not self.nodes.amounts.recount(row, [placed.requests for placed in here.values()]):
            return False
        self.facts.note(row, ROOM)
        self.changes.note(row, _DELETED)
        return True

    # Promises

    def nominate(self, pod: Pod, node: NodeName) -> None:
        uid = PodUid(pod.metadata.uid)
        known = self.nominations.on(node).get(uid)
        if known is None or _promise_facts(known) != _promise_facts(pod):
            # Others learn of it as a promise that was taken back and given anew.
            self.end_nomination(uid)
        self.nominations.put(pod, node)

    def end_nomination(self, uid: PodUid) -> None:
        """Take a promise back, if there is one; others may use the room now."""
        node = self.nominations.node_of(uid)
        if node is None:
            return
        self.nominations.remove(uid)
        row = self.nodes.row_of(node)
        if row is not None:
            self.changes.note(row, _DELETED)
            # Dry runs counted it in, and not only by its labels.
            self.changes.forget_pods()

    # Reading

    def pods_on(self, row: NodeRow) -> list[PlacedPod]:
        found = self._by_row.get(row, {})
        return [PlacedPod(p.pod, p.requests, p.ports) for p in found.values()]

    def crowd(self, pods: Iterable[PlacedPod]) -> Crowd:
        return self.pods.crowd([self._pods[placed.uid] for placed in pods])

    def namespaces_on(self, row: NodeRow) -> dict[str, None]:
        """Return the namespaces of the pods that take room on a row, in the order they came.

        Do not write to it.
        """
        version = self.pods_version(row)
        known = self._namespaces.get(row)
        if known is None or known[0] != version:
            pods = self._by_row.get(row, {}).values()
            known = version, dict.fromkeys([placed.pod.metadata.namespace for placed in pods])
            self._namespaces[row] = known
        return known[1]

    def pods_version(self, row: NodeRow) -> int:
        """Return a number that changes whenever a pod on the row has changed in any way."""
        return self._pods_versions.at(row)

    def rows_with_lesser(self, priority: int) -> npt.NDArray[np.bool_]:
        """Return, for each row there is, whether a pod on it is less important than that."""
        rows = self.nodes.row_count
        if not self.pods.has_lesser(priority):
            return np.zeros(rows, dtype=np.bool_)
        return self.pods.lowest.below(
            priority, row_count=rows, column=self.pods.column, on_row=self._priorities_on
        )

    def _priorities_on(self, row: int) -> Iterator[int]:
        found = self._by_row.get(NodeRow(row), {})
        return (placed.pod.spec.priority or 0 for placed in found.values())

    def overdrawn(self, row: NodeRow, resources: Iterable[str]) -> tuple[Overdrawn, ...]:
        """Return of which resources the pods that the API server has on a node take too much.

        Looks at native resources and at those given. Pods that are only assumed there do not count;
        nor does a node that is not there.
        """
        found = self.nodes.amounts.overdrawn(row, resources)
        if not found or self.nodes.node_at(row) is None:
            return ()
        spare: dict[str, int] = {}
        for placed in self._by_row.get(row, {}).values():
            if placed.assumed:
                for name, amount in (*placed.requests.amounts, (POD_SLOTS, 1)):
                    spare[name] = spare.get(name, 0) + amount
        sure = []
        for over in found:
            requested = over.requested - spare.get(over.resource, 0)
            if requested > over.allocatable:
                sure.append(Overdrawn(over.resource, requested, over.allocatable))
        return tuple(sure)

    def resources_on(self, row: NodeRow) -> Iterable[str]:
        """Return the resources that a row's node offers or its pods take, besides native ones."""
        found = dict.fromkeys(self.nodes.amounts.offers_of(row))
        for placed in self._by_row.get(row, {}).values():
            for name, _ in placed.requests.amounts:
                found[name] = None
        return found

    def delta(self, row: NodeRow) -> Delta:
        return Delta(row, ports=self.nodes.ports, volumes=self.volumes)

    def forget_attached(self) -> None:
        """Forget what is known of attached volumes, which only saves looking at claims again.

        Changes of claims are not noted where nothing is known: evaluations have to look again.
        """
        for row in self.volumes.forget_attached():
            self.facts.note(row, VOLUMES)

    @property
    def moment(self) -> tuple[int, int]:
        """A version of everything that judgements depend on; none is ever used twice."""
        return self.facts.position, self.nominations.version

    def shorten(self) -> bool:
        """Give back free rows at the end of the table, if they are many; return whether it did.

        Nothing that is kept by row survives: what is here is dropped, and readers of facts have to
        start over. Notes of changes stay; they may name rows that are gone, which hold no node.
        """
        if not self.nodes.shorten():
            return False
        rows = self.nodes.row_count
        self.pods.forget_rows()
        self.volumes.cut(rows)
        self._pods_versions.cut(rows)
        self._by_row, self._namespaces = compact(self._by_row), {}
        self.facts.forget()
        return True

    # Pods that take room

    def _place(self, uid: PodUid, placed: Placed) -> None:
        row, facts = placed.row, ROOM | PODS
        self.nodes.amounts.take(row, placed.requests, 1)
        if placed.ports:
            self.nodes.ports.add(row, placed.ports)
            facts |= PORTS
        self.pods.add(placed)
        if placed.pod.spec.volumes:
            self.volumes.add(row, placed.pod)
            facts |= VOLUMES
        if self.nominations.node_of(uid) is not None:
            self.end_nomination(uid)
        here = self._by_row.get(row)
        if here is None:
            self._by_row[row] = {uid: placed}
        else:
            here[uid] = placed
        self._pods[uid] = placed
        self._pods_versions.changed(row)
        self._assumed_count += placed.assumed
        self.facts.note(row, facts)

    def _displace(self, uid: PodUid, placed: Placed, *, quietly: bool = False) -> None:
        row, facts = placed.row, ROOM | PODS
        del self._pods[uid]
        self._pods = compact(self._pods)
        self._pods_versions.changed(row)
        self._assumed_count -= placed.assumed
        self.nodes.amounts.take(row, placed.requests, -1)
        if placed.ports:
            self.nodes.ports.remove(row, placed.ports)
            facts |= PORTS
        self.pods.remove(placed)
        if placed.pod.spec.volumes:
            self.volumes.remove(row, uid)
            facts |= VOLUMES
        here = self._by_row[row]
        del here[uid]
        self.facts.note(row, facts)
        if not quietly:
            self.changes.note(row, _DELETED, placed.pod)
        if here:
            self._by_row[row] = compact(here)
        else:
            del self._by_row[row]
            self.nodes.free_if_empty(row)

    def _refresh(self, placed: Placed, pod: Pod, requests: Requests) -> None:
        row, before = placed.row, placed.pod
        self._pods_versions.changed(row)
        shrank = False
        if placed.requests is not requests and placed.requests != requests:
            self.nodes.amounts.take(row, placed.requests, -1)
            self.nodes.amounts.take(row, requests, 1)
            self.facts.note(row, ROOM)
            shrank = _shrank(placed.requests, requests)
        relabelled = before.metadata.labels != pod.metadata.labels
        leaves = is_terminating(pod) and not is_terminating(before)
        if relabelled or _other_index_facts(before) != _other_index_facts(pod):
            facts = PODS
            self.pods.update(placed, pod)
            if before.spec.volumes != pod.spec.volumes:
                self.volumes.remove(row, PodUid(pod.metadata.uid))
                self.volumes.add(row, pod)
                facts |= VOLUMES
            elif pod.spec.volumes:
                self.volumes.renew(row, pod)
            self.facts.note(row, facts)
        self._assumed_count -= placed.assumed
        placed.pod, placed.requests, placed.assumed = pod, requests, False
        if relabelled or shrank or leaves:
            self.changes.note(row, _change_of(relabelled, shrank, leaves), before, pod)

    def _object_changed(self, kind: Kind, namespace: str, name: str) -> None:
        """Note where another volume is attached now that a claim, a volume or a class changed."""
        for row in self.volumes.object_changed(kind, namespace, name):
            self.facts.note(row, VOLUMES)


def _other_index_facts(pod: Pod) -> tuple[object, ...]:
    """Return what the indexes of placed pods hold of a pod besides its labels."""
    spec = pod.spec
    return is_terminating(pod), spec.priority, spec.affinity, spec.volumes


@cache
def _change_of(relabelled: bool, shrank: bool, leaves: bool) -> Change:
    # Flags are slow to combine, and the API server labels nearly every pod that it binds.
    change = Change(0)
    if relabelled:
        change |= Change.ASSIGNED_POD_LABEL
    if shrank:
        change |= Change.ASSIGNED_POD_SCALE_DOWN
    if leaves:
        change |= Change.ASSIGNED_POD_TERMINATING
    return change


def _promise_facts(pod: Pod) -> tuple[object, ...]:
    return pod.metadata.labels, pod.spec


def _shrank(before: Requests, after: Requests) -> bool:
    asked = dict(after.amounts)
    return any(asked.get(resource, 0) < amount for resource, amount in before.amounts)
