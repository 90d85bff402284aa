"""What `core_speed` lets the core decide on: an empty cluster, unless said otherwise.

Pods are as a real cluster has them (`tests.as_made`), or bare, as they were written.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from k8s_scheduler.api.kinds import Kind
from tests.as_made import as_made
from tests.bench.late_binding import with_claim
from tests.bench.workloads import (
    HOST,
    REQUIRED,
    ZONE,
    MakePod,
    Raw,
    owned,
    plain,
    related,
    spread,
    varied,
)

ROOMY = 110


@dataclass(frozen=True, slots=True)
class CoreWorkload:
    """One line of the table.

    `in_place` pods are on every node before; `deletes` lets one of them go before each decision;
    `room` is for how many pods a node has room.
    """

    come: MakePod
    objects: tuple[tuple[Kind, Raw], ...] = ()
    in_place: int = 0
    room: int = ROOMY
    deletes: bool = False
    # Whether the number that a pod is made with is that of its node.
    per_node: bool = False
    # Whether each pod has a claim of its own: see `late_binding`.
    claims: bool = False
    # Whether no two are alike: then each is of a Job of its own, and otherwise all are of one.
    varies: bool = False
    # As a share of the nodes: where no more pods could be placed.
    at_most: float | None = None

    def pod(self, number: int, name: str, *, bare: bool) -> Raw:
        """Return a pod under a name."""
        made = self.come(number)
        return made if bare else as_made(made, name, number, run=None if self.varies else 0)

    def limit(self, nodes: int, pods: int) -> int:
        """Return how many pods come."""
        return pods if self.at_most is None else min(pods, int(nodes * self.at_most))


# What the pods of a mixed cluster ask for, in turn.
_KINDS: tuple[Callable[[str], Raw], ...] = (
    plain,
    lambda app: spread(app, key=ZONE, action="DoNotSchedule"),
    lambda app: spread(app, key=HOST, action="ScheduleAnyway"),
    lambda app: related(app, side="podAntiAffinity", key=HOST),
    lambda app: related(app, side="podAffinity", key=ZONE),
    lambda app: related(app, side="podAntiAffinity", key=HOST, preferred=True),
    owned,
)
_SHAPES = 50


def make_shape(shape: int) -> Raw:
    """Return a pod of a shape; one after the other they ask for all kinds of things."""
    return _KINDS[shape % len(_KINDS)](f"app-{shape}")


def _mixed(number: int) -> Raw:
    return make_shape(number % _SHAPES)


def _daemon(number: int) -> Raw:
    """Return a pod for one node, as the DaemonSet controller makes it."""
    pod = plain("daemon", cpu="10m", memory="16Mi")
    field = {"key": "metadata.name", "operator": "In", "values": [f"node-{number}"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    pod["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: terms}}
    pod["spec"]["tolerations"] = [
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
    ]
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "daemon", "uid": "set-daemon"}
    pod["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    return pod


def _of_set(number: int) -> Raw:
    """Return a pod of a StatefulSet: its name is among its labels."""
    pod = plain("db")
    pod["metadata"]["labels"] |= {
        "statefulset.kubernetes.io/pod-name": f"db-{number}",
        "apps.kubernetes.io/pod-index": str(number),
    }
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "set-db"}
    pod["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    return pod


def _controlled(kind: Kind, *apps: str) -> tuple[tuple[Kind, Raw], ...]:
    """Return a service and a controller for each of some apps."""
    found: list[tuple[Kind, dict[str, Any]]] = []
    for app in apps:
        labels = {"app": app}
        found.append((Kind.SERVICE, {"metadata": {"name": app}, "spec": {"selector": labels}}))
        selector = {"matchLabels": labels}
        found.append((kind, {"metadata": {"name": app}, "spec": {"selector": selector}}))
    return tuple(found)


_OWNED_APPS = tuple(
    f"app-{shape}" for shape in range(_SHAPES) if _KINDS[shape % len(_KINDS)] is owned
)

CORE_WORKLOADS: dict[str, CoreWorkload] = {
    "basic": CoreWorkload(lambda _: plain("basic")),
    "spread": CoreWorkload(lambda _: spread("hard", key=ZONE, action="DoNotSchedule")),
    "prefspread": CoreWorkload(lambda _: spread("soft", key=HOST, action="ScheduleAnyway")),
    "defspread": CoreWorkload(lambda _: owned("def"), objects=_controlled(Kind.REPLICA_SET, "def")),
    "anti": CoreWorkload(lambda _: related("anti", side="podAntiAffinity", key=HOST), at_most=0.9),
    "aff": CoreWorkload(lambda _: related("aff", side="podAffinity", key=ZONE)),
    "prefanti": CoreWorkload(
        lambda _: related("prefanti", side="podAntiAffinity", key=HOST, preferred=True)
    ),
    "mixed": CoreWorkload(_mixed, objects=_controlled(Kind.REPLICA_SET, *_OWNED_APPS)),
    "hetero": CoreWorkload(varied, varies=True),
    "churn": CoreWorkload(lambda _: plain("basic"), in_place=2, deletes=True),
    "daemonset": CoreWorkload(_daemon, per_node=True),
    "statefulset": CoreWorkload(_of_set, objects=_controlled(Kind.STATEFUL_SET, "db")),
    "full": CoreWorkload(lambda _: plain("basic"), in_place=1, room=1),
    # As many volumes as `make bench` has for them.
    "localpv": CoreWorkload(with_claim, claims=True, at_most=0.4),
}
