"""What the benchmark lets the scheduler decide on: clusters, pods in place and pods to come.

Every workload is a way to make the i-th pod, and to say where the i-th pod in place is. Nodes are
in three zones. What is in place before the measurement is of the workload itself as far as its
rules let it be, so that its counters have something to count.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ZONES = 3
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

Raw = dict[str, Any]
MakePod = Callable[[int], Raw]


def plain(app: str, *, cpu: str = "100m", memory: str = "128Mi") -> Raw:
    """Return a pod that asks for nothing but resources."""
    requests = {"cpu": cpu, "memory": memory}
    container = {"name": "c", "image": "registry/app:v1", "resources": {"requests": requests}}
    return {
        "metadata": {"namespace": "default", "labels": {"app": app}},
        "spec": {"schedulerName": "default-scheduler", "containers": [container]},
        "status": {},
    }


def _selector(app: str) -> Raw:
    return {"matchLabels": {"app": app}}


def spread(app: str, *, key: str, action: str) -> Raw:
    """Return a pod that is spread evenly."""
    pod = plain(app)
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": action,
            "labelSelector": _selector(app),
        }
    ]
    return pod


def related(app: str, *, side: str, key: str, preferred: bool = False) -> Raw:
    """Return a pod with a term on pods of its own kind."""
    pod = plain(app)
    term: Raw = {"topologyKey": key, "labelSelector": _selector(app)}
    if preferred:
        pod["spec"]["affinity"] = {side: {PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}}
    else:
        pod["spec"]["affinity"] = {side: {REQUIRED: [term]}}
    return pod


def owned(app: str) -> Raw:
    """Return a pod of a ReplicaSet."""
    pod = plain(app)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": f"rs-{app}"}
    pod["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    return pod


def varied(number: int) -> Raw:
    """Return a pod whose requests nobody else has."""
    return plain("hetero", cpu=f"{50 + number % 997}m", memory=f"{64 + number % 1009}Mi")


# A mixed cluster's workloads take turns in what they ask for.
_KINDS: tuple[Callable[[str], Raw], ...] = (
    plain,
    lambda app: spread(app, key=ZONE, action="DoNotSchedule"),
    lambda app: spread(app, key=HOST, action="ScheduleAnyway"),
    lambda app: related(app, side="podAntiAffinity", key=HOST, preferred=True),
    lambda app: related(app, side="podAffinity", key=ZONE),
)


def _mixed(shapes: int) -> MakePod:
    return lambda number: _KINDS[number % shapes % len(_KINDS)](f"app-{number % shapes}")


def _anywhere(number: int, nodes: int) -> int:
    """Return the node of a pod in place: all over, and not zone after zone."""
    return number * 7 % nodes


def _in_one_zone(number: int, nodes: int) -> int:
    return number * ZONES % (nodes - nodes % ZONES)


@dataclass(frozen=True, slots=True)
class Workload:
    """One line of the table.

    `in_place` makes the pods that are there before, `come` those that are decided on;
    `deletes` takes one away before each decision; `full` leaves no room for any.
    """

    come: MakePod
    in_place: MakePod
    node_of: Callable[[int, int], int] = _anywhere
    deletes: bool = False
    full: bool = False
    objects: tuple[tuple[Kind, Raw], ...] = ()


def _uniform(make: MakePod, **more: Any) -> Workload:
    return Workload(come=make, in_place=make, **more)


def _anti(number: int) -> Raw:
    return related("anti", side="podAntiAffinity", key=HOST)


_OWNER = (
    (Kind.SERVICE, {"metadata": {"name": "def"}, "spec": {"selector": {"app": "def"}}}),
    (Kind.REPLICA_SET, {"metadata": {"name": "def"}, "spec": {"selector": _selector("def")}}),
)

WORKLOADS: dict[str, Workload] = {
    "basic": _uniform(lambda _: plain("basic")),
    "spread": _uniform(lambda _: spread("spread", key=ZONE, action="DoNotSchedule")),
    "prefspread": _uniform(lambda _: spread("soft", key=HOST, action="ScheduleAnyway")),
    "defspread": _uniform(lambda _: owned("def"), objects=_OWNER),
    # Every eighth pod in place is of the kind that stands alone: on an eighth of the nodes at most
    # twice over, which leaves room.
    "anti": Workload(_anti, lambda n: plain("other") if n % 8 else _anti(n)),
    "aff": _uniform(lambda _: related("aff", side="podAffinity", key=ZONE), node_of=_in_one_zone),
    "prefanti": _uniform(
        lambda _: related("prefanti", side="podAntiAffinity", key=HOST, preferred=True)
    ),
    "mixed5": _uniform(_mixed(5)),
    "mixed": _uniform(_mixed(50)),
    "mixed500": _uniform(_mixed(500)),
    "hetero": _uniform(varied),
    "churn": _uniform(lambda _: plain("basic"), deletes=True),
    "full": _uniform(lambda _: plain("basic"), full=True),
    "fullhet": Workload(varied, lambda _: plain("basic"), full=True),
}


def make_node(number: int, *, pods: int) -> Node:
    """Return a node with room for so many pods."""
    name = f"node-{number}"
    labels = {HOST: name, ZONE: f"zone-{number % ZONES}", "kubernetes.io/os": "linux"}
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": name, "labels": labels},
            "status": {"allocatable": {"cpu": "32", "memory": "64Gi", "pods": str(pods)}},
        },
        Node,
    )


def make_pod(raw: Raw, name: str, *, node: str = "") -> Pod:
    """Return a pod under a name, on a node if one is given."""
    metadata = raw["metadata"] | {"name": name, "uid": name}
    spec = raw["spec"] | ({"nodeName": node} if node else {})
    return msgspec.convert({**raw, "metadata": metadata, "spec": spec}, Pod)


def make_object(kind: Kind, raw: Raw) -> ClusterObject:
    """Return an object of another kind, in the namespace of the pods."""
    metadata = raw["metadata"] | {"namespace": "default"}
    return msgspec.convert({**raw, "metadata": metadata}, kind.type)
