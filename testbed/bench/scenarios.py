"""What the benchmark lets the schedulers place: scheduler_perf's cases where there is one.

Names, sizes and templates are scheduler_perf's of v1.37.1. What differs:

- Every node is in one of three zones, also where scheduler_perf has one (SchedulingPodAffinity) or
  none. Required affinity finds its like in each of them, so that every node is left to choose
  from, as there; but a zone with more of them scores better, and tends to get them all.
- `prefspread` spreads softly over hosts; PreferredTopologySpreading does over zones, which tells
  three groups of nodes apart where hosts tell all of them.
- `unschedulable` has pods that fit nowhere in the queue from the start, and not only those that
  Unschedulable creates while it runs.
- Pods are created before the scheduler starts, and those in place are on their nodes, round robin.
- Pods are as a real cluster has them: the API server's admission gives them their token's volume
  and the default tolerations, and they belong to a Job.
- `deployment`, `mixed` and `localpv` are this benchmark's own. `deployment` has replicas of ten
  Deployments with a Service each: the default constraints spread them, as they do most pods of most
  clusters.

Any number of nodes and pods can be asked for; `counts` says how many of them can be placed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from testbed.bench.scenario_objects import (
    bench_node,
    controlled,
    full_node,
    local_volumes,
    node_name,
    priority_class,
    service,
)
from testbed.bench.scenario_pods import (
    BENCH_SCHEDULER,
    CHURN,
    DEPLOYMENTS,
    OWNED_APPS,
    MakePod,
    alone,
    default_pod,
    host_spread,
    low_priority,
    mixed,
    preemptor,
    rather_alone,
    replica,
    together,
    too_large,
    with_claim,
    zone_spread,
)
from testbed.client import Object

__all__ = [
    "BENCH_SCHEDULER",
    "DEFAULT",
    "SCENARIOS",
    "Churn",
    "Counts",
    "Fleet",
    "Scenario",
    "Step",
]

ZONES = 3


@dataclass(frozen=True, slots=True)
class Fleet:
    """The nodes, as far as room for measured pods is concerned.

    `slots` is how many of them, by size, any node has room for beside the pods in place.
    """

    nodes: int
    zones: int
    init_pods: int
    slots: int

    @property
    def smallest_zone(self) -> int:
        """How many nodes the smallest zone has, of those that have any."""
        return self.nodes // min(self.nodes, self.zones)


Room = Callable[[Fleet], int]


def _anywhere(fleet: Fleet) -> int:
    return fleet.nodes * fleet.slots


def _in_all_zones(fleet: Fleet) -> int:
    """Return what fits if every zone has to take as many as any other."""
    return min(fleet.nodes, fleet.zones) * fleet.smallest_zone * fleet.slots


def _in_one_zone(fleet: Fleet) -> int:
    """Return what fits wherever it goes: as long as no zone can be full, no constraint is stuck."""
    return fleet.smallest_zone * fleet.slots


def _one_on_a_node(fleet: Fleet) -> int:
    return fleet.nodes - fleet.init_pods


def _beside_preemptors(fleet: Fleet) -> int:
    """Return half of what fits: preemptors take up to a quarter of the nodes."""
    return fleet.nodes * fleet.slots // 2


@dataclass(frozen=True, slots=True)
class Counts:
    """How many of everything."""

    nodes: int
    init_pods: int
    pods: int
    background: int
    # Pods that arrive one by one when the others have been placed.
    arriving: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done at one tick of the churn."""

    create: tuple[Object, ...] = ()
    delete: tuple[Object, ...] = ()


@dataclass(frozen=True, slots=True)
class Churn:
    """Objects that come, and where they are recreated also go, while pods are placed.

    Those that are recreated are created at one tick and deleted at the next. `share`, if given, is
    how many sets there are at most, as a share of the nodes.
    """

    interval_seconds: float
    make: Callable[[int], tuple[Object, ...]]
    recreates: bool = False
    share: float | None = None

    def at(self, tick: int, *, nodes: int) -> Step:
        """Return what a tick does; the first is number 0."""
        if self.recreates:
            made = self.make(tick // 2)
            return Step(delete=made) if tick % 2 else Step(create=made)
        if self.share is not None and tick >= int(nodes * self.share):
            return Step()
        return Step(create=self.make(tick))


def _no_objects(_nodes: int, _pods: int) -> list[Object]:
    return []


def _high_priority(_nodes: int, _pods: int) -> list[Object]:
    return [priority_class("bench-high")]


def _preemption(_nodes: int, _pods: int) -> list[Object]:
    return [priority_class("bench-preemptor")]


def _owners(_nodes: int, _pods: int) -> list[Object]:
    return controlled(OWNED_APPS)


def _deployed(_nodes: int, _pods: int) -> list[Object]:
    return controlled(DEPLOYMENTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One workload. `nodes`, `init_pods`, `pods` and `background_pods` are its usual size."""

    name: str
    # scheduler_perf's case and workload; empty if it has none.
    upstream: str
    nodes: int
    init_pods: int
    pods: int
    measured: MakePod
    initial: MakePod = default_pod
    objects: Callable[[int, int], list[Object]] = _no_objects
    room: Room = _anywhere
    zones: int = ZONES
    # What pods ask for, in thousandths of a CPU: it runs out before memory does.
    milli_cpu: int = 100
    initial_milli_cpu: int = 100
    # However few nodes there are, so many pods are in place, as long as each has its node.
    least_init_pods: int = 0
    # Pods that fit nowhere.
    background_pods: int = 0
    churn: Churn | None = None
    # Whether pods have to go to make room: then nobody can tell afterwards who was where when.
    evicts: bool = False
    # Whether it takes the controller manager: only that one binds claims.
    needs_controllers: bool = False
    # At most so many pods arrive per second, where something else than a scheduler can't do more.
    most_per_second: float = math.inf

    def counts(
        self, nodes: int | None = None, pods: int | None = None, *, spare: int = 0
    ) -> Counts:
        """Return the numbers for so many nodes and at most so many pods: as many as have room.

        `spare` is for how many more of them there should be room afterwards; where both are too
        many for the room, they get half of it at most. Pods in place are as many per node as
        usual, pods in the background as many per pod. Raises ValueError.
        """
        nodes = self.nodes if nodes is None else nodes
        pods = self.pods if pods is None else pods
        if nodes < 1:
            raise ValueError(f"{nodes} nodes: a cluster has at least one")
        if pods < 1:
            raise ValueError(f"{pods} pods: there is at least one to place")
        initial = max(self.init_pods * nodes // self.nodes, min(nodes, self.least_init_pods))
        room = self.room(self._fleet(nodes, initial))
        if room < 1:
            raise ValueError(f"{self.name}: {nodes} nodes have no room for a pod: take more nodes")
        arriving = min(spare, max(room // 2, room - pods))
        placed = min(pods, room - arriving)
        return Counts(
            nodes=nodes,
            init_pods=initial,
            pods=placed,
            background=self.background_pods * placed // self.pods,
            arriving=arriving,
        )

    def _fleet(self, nodes: int, initial: int) -> Fleet:
        taken = -(-initial // nodes)
        free = 4000 if self.evicts_all else 4000 - taken * self.initial_milli_cpu
        count = 110 if self.evicts_all else 110 - taken
        return Fleet(
            nodes=nodes,
            zones=self.zones,
            init_pods=initial,
            slots=min(count, free // self.milli_cpu),
        )

    @property
    def evicts_all(self) -> bool:
        """Whether measured pods themselves make room: what is in place takes none from them."""
        return self.evicts and self.churn is None

    def make_nodes(self, count: int) -> list[Object]:
        """Return the nodes."""
        return [bench_node(number, zones=self.zones) for number in range(count)]

    def make_objects(self, nodes: int, pods: int) -> list[Object]:
        """Return what has to be there before so many pods come to so many nodes."""
        return self.objects(nodes, pods)

    def make_init_pods(self, count: int, nodes: int) -> list[Object]:
        """Return the pods in place, dealt round over the nodes."""
        pods = [self.initial(f"init-{number}", number) for number in range(count)]
        for number, pod in enumerate(pods):
            pod["spec"]["nodeName"] = node_name(number % nodes)
        return pods

    def make_pods(self, count: int) -> list[Object]:
        """Return the pods to place."""
        return [self.measured(f"pod-{number}", number) for number in range(count)]

    def make_arriving(self, counts: Counts) -> list[Object]:
        """Return the pods that come later; their numbers, and so their claims, are their own."""
        numbers = range(counts.pods, counts.pods + counts.arriving)
        return [self.measured(f"steady-{number}", number) for number in numbers]

    def background(self, count: int) -> list[Object]:
        """Return the pods that stay in the queue."""
        return [too_large(f"background-{number}", number) for number in range(count)]


def _mixed_churn(number: int) -> tuple[Object, ...]:
    name = f"{CHURN}{number}"
    return full_node(name), too_large(name, number), service(name, "churn")


_ALL = (
    Scenario(
        name="basic",
        upstream="SchedulingBasic/5000Nodes_10000Pods",
        nodes=5000,
        init_pods=1000,
        pods=10_000,
        measured=default_pod,
    ),
    Scenario(
        name="spread",
        upstream="TopologySpreading/5000Nodes_5000Pods",
        nodes=5000,
        init_pods=5000,
        pods=5000,
        measured=zone_spread,
        room=_in_all_zones,
    ),
    Scenario(
        name="prefspread",
        upstream="PreferredTopologySpreading/5000Nodes_5000Pods",
        nodes=5000,
        init_pods=5000,
        pods=5000,
        measured=host_spread,
    ),
    Scenario(
        name="anti",
        upstream="SchedulingPodAntiAffinity/5000Nodes_2000Pods",
        nodes=5000,
        init_pods=1000,
        pods=2000,
        measured=alone,
        initial=alone,
        room=_one_on_a_node,
    ),
    Scenario(
        name="aff",
        upstream="SchedulingPodAffinity/5000Nodes_5000Pods",
        nodes=5000,
        init_pods=5000,
        pods=5000,
        measured=together,
        initial=together,
        least_init_pods=ZONES,
    ),
    Scenario(
        name="prefanti",
        upstream="SchedulingPreferredPodAntiAffinity/5000Nodes_5000Pods",
        nodes=5000,
        init_pods=5000,
        pods=5000,
        measured=rather_alone,
        initial=rather_alone,
    ),
    Scenario(
        name="deployment",
        upstream="",
        nodes=5000,
        init_pods=1000,
        pods=10_000,
        measured=replica,
        objects=_deployed,
    ),
    Scenario(
        name="mixed",
        upstream="",
        nodes=5000,
        init_pods=2000,
        pods=5000,
        measured=mixed,
        objects=_owners,
        room=_in_one_zone,
    ),
    Scenario(
        name="churn",
        upstream="SchedulingWithMixedChurn/5000Nodes_10000Pods",
        nodes=5000,
        init_pods=0,
        pods=10_000,
        measured=default_pod,
        objects=_high_priority,
        churn=Churn(1.0, _mixed_churn, recreates=True),
    ),
    Scenario(
        name="preemption",
        upstream="PreemptionAsync/5000Nodes",
        nodes=5000,
        init_pods=20_000,
        pods=5000,
        measured=default_pod,
        initial=low_priority,
        initial_milli_cpu=900,
        objects=_preemption,
        room=_beside_preemptors,
        churn=Churn(0.2, lambda number: (preemptor(f"{CHURN}{number}", number),), share=0.25),
        evicts=True,
    ),
    Scenario(
        name="preemptionbasic",
        upstream="PreemptionBasic/1000Nodes",
        nodes=1000,
        init_pods=4000,
        pods=1000,
        measured=preemptor,
        milli_cpu=3970,
        initial=low_priority,
        initial_milli_cpu=900,
        objects=_preemption,
        evicts=True,
    ),
    Scenario(
        name="unschedulable",
        upstream="Unschedulable/5kNodes/100Init/10kPods",
        nodes=5000,
        init_pods=100,
        pods=10_000,
        measured=default_pod,
        objects=_high_priority,
        background_pods=10_000,
        churn=Churn(0.2, lambda number: (too_large(f"{CHURN}{number}", number),)),
    ),
    Scenario(
        name="localpv",
        upstream="",
        nodes=5000,
        init_pods=1000,
        pods=2000,
        measured=with_claim,
        objects=local_volumes,
        needs_controllers=True,
        # The controller manager binds one claim after the other.
        most_per_second=5.0,
    ),
)

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _ALL}
DEFAULT = ("basic", "deployment", "spread", "prefspread", "anti", "aff")
