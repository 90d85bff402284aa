"""Nothing is parked in vain: whatever happened, no parked pod is feasible when judged afresh.

Histories with pods that look at each other, at namespaces, at claims and volumes, and with pods
that were promised a node. On the way a second core is born from a checkpoint; it must not be told
apart from then on. Driven by a seeded generator, as in `test_core`.
"""

import dataclasses
import random
from typing import Any

import msgspec
import pytest

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.api.kinds import Kind, as_text, from_text
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.messages.incoming import (
    BindResult,
    Message,
    NodeChanged,
    ObjectChanged,
    PodChanged,
    Restore,
    Schedule,
    Tick,
)
from k8s_scheduler.core.messages.outgoing import Bind
from k8s_scheduler.core.queue import waking
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.builders import PodBuilder, make_node, make_pod
from tests.inside import inside

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
STEPS = 40
NODES = ("n0", "n1", "n2")
ZONES = ("z1", "z2")
wire = msgspec.msgpack.Encoder(enc_hook=as_text)
unwire = msgspec.msgpack.Decoder(Message, dec_hook=from_text)


def without_preemption(profile: ResolvedProfile) -> ResolvedProfile:
    """Return a profile that judges without trying whose leaving would help: that takes long."""
    points = {point: uses for point, uses in profile.points.items() if point != "postFilter"}
    return dataclasses.replace(profile, points=points)


SETUP = Setup(
    profiles=tuple(map(without_preemption, default_configuration(known_plugins()).profiles))
)


class History:
    """A cluster of a few nodes and pods; `volumes` adds claims, volumes and their kin."""

    setup = SETUP

    def __init__(self, seed: int, *, volumes: bool) -> None:
        self.rng = random.Random(seed)
        self.volumes = volumes
        self.core = Scheduler(self.setup)
        self.twin: Scheduler | None = None
        self.now = 1000.0
        self.created = 0
        self.pods: dict[str, dict[str, Any]] = {}
        self.nodes: set[str] = set()
        self.open_binds: list[Bind] = []

    def run(self) -> None:
        for _ in range(self.rng.randint(1, 3)):
            self.put_node()
        steps = {**WEIGHTS, **(VOLUME_WEIGHTS if self.volumes else {})}
        for number in range(1, STEPS + 1):
            (step,) = self.rng.choices(list(steps), list(steps.values()))
            step(self)
            if number % 3 == 0:
                self.nothing_is_parked_in_vain()
        self.let_time_pass()
        self.nothing_is_parked_in_vain()

    def tell(self, message: Message) -> None:
        out = self.core.handle(message)
        if self.twin is not None:
            assert self.twin.handle(unwire.decode(wire.encode(message))) == out
        self.open_binds += [i for i in out if isinstance(i, Bind)]

    def maybe(self, chance: float) -> bool:
        return self.rng.random() < chance

    # Nodes

    def put_node(self) -> None:
        name = self.rng.choice(NODES)
        node = make_node(name).label(host=name)
        node.raw["metadata"]["labels"]["kubernetes.io/hostname"] = name
        if self.maybe(0.8):
            node.label(zone=self.rng.choice(ZONES))
        node.offers(cpu=self.rng.choice(["1", "2", "4"]), memory="8Gi", pods="6")
        if self.maybe(0.2):
            node.taint("k", effect=self.rng.choice(["NoSchedule", "PreferNoSchedule"]))
        if self.maybe(0.1):
            node.cordoned()
        self.nodes.add(name)
        self.tell(NodeChanged(self.now, NodeName(name), node.obj()))

    def drop_node(self) -> None:
        name = self.rng.choice(NODES)
        self.nodes.discard(name)
        self.tell(NodeChanged(self.now, NodeName(name), None))

    # Pods

    def create_pods(self) -> None:
        for _ in range(self.rng.randint(1, 3)):
            self.created += 1
            name = f"p{self.created}"
            self.pods[name] = self.random_pod(name)
            self.show(name)

    def random_pod(self, name: str) -> dict[str, Any]:
        """Return a pod with few demands: each then matters."""
        rng = self.rng
        pod = make_pod(name).namespace(rng.choice("ab")).uid(name).label(app=rng.choice("xy"))
        pod.request(cpu=rng.choice(["0", "0", "1", "2"])).priority(rng.choice([0, 0, 1]))
        for demand in rng.choices(DEMANDS, k=rng.choice([0, 1, 1, 2])):
            demand(self, pod)
        if self.volumes:
            self.add_volumes(pod.raw["spec"])
        return pod.raw

    def demand_toleration(self, pod: PodBuilder) -> None:
        pod.tolerates("k", operator="Exists")

    def demand_room(self, pod: PodBuilder) -> None:
        pod.request(cpu="2")

    def demand_labels(self, pod: PodBuilder) -> None:
        pod.raw["spec"]["nodeSelector"] = {"zone": self.rng.choice(ZONES)}

    def demand_node(self, pod: PodBuilder) -> None:
        fields = {"key": "metadata.name", "operator": "In", "values": [self.rng.choice(NODES)]}
        required = {"nodeSelectorTerms": [{"matchFields": [fields]}]}
        pod.raw["spec"].setdefault("affinity", {})["nodeAffinity"] = {REQUIRED: required}

    def demand_port(self, pod: PodBuilder) -> None:
        pod.raw["spec"]["containers"][0]["ports"] = [{"hostPort": 80}]

    def demand_company(self, pod: PodBuilder) -> None:
        term = {REQUIRED: [self.random_term()]}
        pod.raw["spec"].setdefault("affinity", {})["podAffinity"] = term

    def demand_distance(self, pod: PodBuilder) -> None:
        term = {REQUIRED: [self.random_term()]}
        pod.raw["spec"].setdefault("affinity", {})["podAntiAffinity"] = term

    def demand_spreading(self, pod: PodBuilder) -> None:
        pod.raw["spec"]["topologySpreadConstraints"] = [self.random_constraint()]

    def have_promise(self, pod: PodBuilder) -> None:
        pod.raw["status"]["nominatedNodeName"] = self.rng.choice(NODES)

    def random_term(self) -> dict[str, Any]:
        term: dict[str, Any] = {"topologyKey": self.rng.choice(["zone", "host"])}
        term["labelSelector"] = {"matchLabels": {"app": self.rng.choice("xy")}}
        if self.maybe(0.4):
            term["namespaceSelector"] = {"matchLabels": {"team": "red"}}
        return term

    def random_constraint(self) -> dict[str, Any]:
        constraint: dict[str, Any] = {
            "maxSkew": 1,
            "topologyKey": self.rng.choice(["zone", "host"]),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": self.rng.choice("xy")}},
        }
        if self.maybe(0.2):
            constraint["minDomains"] = 2
        if self.maybe(0.3):
            constraint["nodeTaintsPolicy"] = "Honor"
        return constraint

    def add_volumes(self, spec: dict[str, Any]) -> None:
        sources: list[dict[str, Any]] = [
            {"persistentVolumeClaim": {"claimName": self.rng.choice(["c0", "c1", "c2"])}},
            {"gcePersistentDisk": {"pdName": "disk"}},
        ]
        picked = self.rng.choices(sources, weights=[3, 1], k=self.rng.choice([0, 1, 1]))
        spec["volumes"] = [{"name": f"v{i}", **source} for i, source in enumerate(picked)]

    def show(self, name: str) -> None:
        pod = msgspec.convert(self.pods[name], Pod) if name in self.pods else None
        self.tell(PodChanged(self.now, PodUid(name), pod))

    def some_pod(self) -> str | None:
        return self.rng.choice(sorted(self.pods)) if self.pods else None

    def change_pod(self) -> None:
        """Relabel a pod, let it go, promise it a node or take the promise back."""
        name = self.some_pod()
        if name is None:
            return
        raw = self.pods[name]
        change = self.rng.choice(["label", "terminate", "promise", "break promise", "version"])
        if change == "label":
            raw["metadata"]["labels"] = {"app": self.rng.choice("xyz")}
        elif change == "terminate" and raw["spec"].get("nodeName"):
            raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        elif change == "promise":
            raw["status"]["nominatedNodeName"] = self.rng.choice(NODES)
        elif change == "break promise":
            raw["status"].pop("nominatedNodeName", None)
        raw["metadata"]["resourceVersion"] = str(self.rng.random())
        self.show(name)

    def delete_pod(self) -> None:
        name = self.some_pod()
        if name is not None:
            del self.pods[name]
            self.show(name)

    def bind_by_stranger(self) -> None:
        name = self.some_pod()
        if name is not None:
            self.bind(name, self.rng.choice(NODES))

    def bind(self, name: str, node: str) -> bool:
        raw = self.pods.get(name)
        if raw is None or raw["spec"].get("nodeName"):
            return False
        raw["spec"]["nodeName"] = node
        self.show(name)
        return True

    # Other objects

    def put_object(self, kind: Kind, namespace: str, name: str, **parts: Any) -> None:
        metadata = {"name": name, "namespace": namespace, "uid": f"{kind}-{name}"}
        metadata |= parts.pop("metadata", {})
        found = msgspec.convert({"metadata": metadata, **parts}, kind.type)
        self.tell(ObjectChanged(self.now, kind, namespace, name, found))

    def drop_object(self, kind: Kind, namespace: str, name: str) -> None:
        self.tell(ObjectChanged(self.now, kind, namespace, name, None))

    def change_namespace(self) -> None:
        name = self.rng.choice("ab")
        if self.maybe(0.2):
            self.drop_object(Kind.NAMESPACE, "", name)
            return
        labels = self.rng.choice([{}, {"team": "red"}])
        self.put_object(Kind.NAMESPACE, "", name, metadata={"labels": labels})

    def change_claim(self) -> None:
        namespace, name = self.rng.choice("ab"), self.rng.choice(["c0", "c1", "c2"])
        if self.maybe(0.2):
            self.drop_object(Kind.PERSISTENT_VOLUME_CLAIM, namespace, name)
            return
        spec: dict[str, Any] = {
            "accessModes": [self.rng.choice(["ReadWriteOnce", "ReadWriteOncePod"])],
            "storageClassName": self.rng.choice(["now", "later"]),
            "resources": {"requests": {"storage": "1Gi"}},
        }
        status = {}
        annotations = {}
        if self.maybe(0.7):
            spec["volumeName"] = self.rng.choice(["pv0", "pv1"])
            status = {"phase": "Bound"}
            annotations["pv.kubernetes.io/bind-completed"] = "yes"
        self.put_object(
            Kind.PERSISTENT_VOLUME_CLAIM,
            namespace,
            name,
            metadata={"annotations": annotations},
            spec=spec,
            status=status,
        )

    def change_volume(self) -> None:
        name = self.rng.choice(["pv0", "pv1"])
        if self.maybe(0.2):
            self.drop_object(Kind.PERSISTENT_VOLUME, "", name)
            return
        spec: dict[str, Any] = {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": self.rng.choice(["now", "later"]),
            "csi": {"driver": "csi.example.com", "volumeHandle": name},
        }
        if self.maybe(0.5):
            zone = {"key": "zone", "operator": "In", "values": [self.rng.choice(ZONES)]}
            spec["nodeAffinity"] = {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
            }
        self.put_object(Kind.PERSISTENT_VOLUME, "", name, spec=spec, status={"phase": "Available"})

    def change_class(self) -> None:
        name = self.rng.choice(["now", "later"])
        if self.maybe(0.2):
            self.drop_object(Kind.STORAGE_CLASS, "", name)
            return
        mode = "Immediate" if name == "now" else "WaitForFirstConsumer"
        provisioner = self.rng.choice(["csi.example.com", "kubernetes.io/no-provisioner"])
        self.put_object(
            Kind.STORAGE_CLASS, "", name, provisioner=provisioner, volumeBindingMode=mode
        )

    def change_csi_node(self) -> None:
        name = self.rng.choice(NODES)
        if self.maybe(0.3):
            self.drop_object(Kind.CSI_NODE, "", name)
            return
        driver = {
            "name": "csi.example.com",
            "nodeID": name,
            "allocatable": {"count": self.rng.choice([0, 1, 3])},
        }
        self.put_object(Kind.CSI_NODE, "", name, spec={"drivers": [driver]})

    # The shell

    def schedule(self) -> None:
        self.tell(Schedule(self.now, self.rng.choice([1, 3, 100])))

    def tick(self) -> None:
        self.now += self.rng.choice([0.4, 1.0, 3.0, 31.0])
        self.tell(Tick(self.now))

    def answer_binds(self) -> None:
        lucky = self.maybe(0.7)
        for _ in range(min(self.rng.randint(1, 3), len(self.open_binds))):
            bind = self.open_binds.pop(self.rng.randrange(len(self.open_binds)))
            bound = lucky and self.bind(bind.uid, bind.node)
            message = "" if bound else "the server said no"
            self.tell(BindResult(self.now, bind.uid, bind.attempt, bind.node, bound, message))

    def branch_off_a_twin(self) -> None:
        restore = unwire.decode(wire.encode(Restore(self.now, self.core.checkpoint())))
        self.twin = Scheduler(self.setup)
        self.twin.handle(restore)
        assert self.twin.checkpoint() == self.core.checkpoint()

    # What must hold

    def let_time_pass(self) -> None:
        for _ in range(3):
            self.settle()
            self.now += 15.0
            self.tell(Tick(self.now))

    def settle(self) -> None:
        for _ in range(1000):
            if not self.core.has_work:
                return
            self.tell(Schedule(self.now, 100))
        pytest.fail("the core never comes to rest")

    def nothing_is_parked_in_vain(self) -> None:
        self.settle()
        for queued in inside(self.core).queue.parked:
            feasible = feasible_nodes(self.core, queued.pod)
            assert feasible == (), f"{queued.uid} rejected by {queued.rejectors}"


def feasible_nodes(core: Scheduler, pod: Pod) -> tuple[NodeName, ...]:
    try:
        return core.judge(pod).feasible
    except PluginError:
        return ()


DEMANDS = (
    History.demand_toleration,
    History.demand_room,
    History.demand_labels,
    History.demand_node,
    History.demand_port,
    History.demand_company,
    History.demand_company,
    History.demand_distance,
    History.demand_distance,
    History.demand_spreading,
    History.demand_spreading,
    History.have_promise,
)
WEIGHTS: dict[Any, float] = {
    History.create_pods: 5,
    History.change_pod: 4,
    History.delete_pod: 2,
    History.bind_by_stranger: 1,
    History.put_node: 2,
    History.drop_node: 0.7,
    History.change_namespace: 1,
    History.schedule: 5,
    History.tick: 2,
    History.answer_binds: 4,
    History.branch_off_a_twin: 0.5,
}
VOLUME_WEIGHTS: dict[Any, float] = {
    History.change_claim: 3,
    History.change_volume: 2,
    History.change_class: 2,
    History.change_csi_node: 1,
}


def run(seeds: range, *, volumes: bool) -> None:
    for seed in seeds:
        try:
            History(seed, volumes=volumes).run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("first", range(0, 1500, 30))
def test_pods_that_look_at_each_other(first, monkeypatch):
    # Small steps, so that much happens between them.
    monkeypatch.setattr(waking, "WORK_PER_STEP", 100 * (1 + first // 30 % 3))
    monkeypatch.setattr(waking, "PODS_PER_STEP", 1 + first // 30 % 4)
    run(range(first, first + 30), volumes=False)


@pytest.mark.parametrize("first", range(0, 300, 30))
def test_pods_with_volumes(first, monkeypatch):
    monkeypatch.setattr(waking, "WORK_PER_STEP", 200)
    run(range(first, first + 30), volumes=True)
