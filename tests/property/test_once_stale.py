"""What the hunt has found, each as short as it can be told."""

from typing import Any

import msgspec
import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.messages.incoming import NodeChanged, ObjectChanged, PodChanged, Schedule
from k8s_scheduler.core.messages.outgoing import PatchCondition
from k8s_scheduler.core.scheduler import Scheduler
from tests.builders import PodBuilder, make_node, make_pod
from tests.property.kept_checks import Scratch, check
from tests.property.kept_pods import HOST, PREFERRED, REQUIRED, SCHEDULERS, ZONE, setup

NOW = 1000.0


class Cluster:
    """A core that keeps evaluations, and what it is told."""

    def __init__(self, **options: Any) -> None:
        self.core = Scheduler(
            setup(SCHEDULERS[:1], preempts=False, keeps_evaluations=True, **options)
        )

    def put_node(self, name: str, **labels: str) -> None:
        node = make_node(name).label(**{HOST: name}, **labels).obj()
        self.core.handle(NodeChanged(NOW, NodeName(name), node))

    def put_pod(self, pod: PodBuilder) -> None:
        found = pod.scheduler(SCHEDULERS[0]).obj()
        self.core.handle(PodChanged(NOW, PodUid(found.metadata.uid), found))

    def put_service(self, **selector: str) -> None:
        raw = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": selector}}
        service = msgspec.convert(raw, Kind.SERVICE.type)
        self.core.handle(ObjectChanged(NOW, Kind.SERVICE, "default", "s", service))

    def is_kept(self, pod: PodBuilder, *, times: int = 1) -> bool:
        """Compare what is kept of a pod's shape; return whether anything is."""
        kept = False
        for _ in range(times):
            found = pod.scheduler(SCHEDULERS[0]).obj()
            kept = check(self.core, Scratch(self.core), found, preempts=False, start=0)
        return kept


@pytest.mark.parametrize("kind", ["required", "preferred"])
def test_a_term_that_begins_to_count_when_the_first_node_gets_its_topology_label(kind):
    """Nothing was added up by a key that no node had."""
    cluster = Cluster()
    cluster.put_node("a")
    cluster.put_node("b")
    refusing = make_pod("refusing").on("a").request(cpu="1")
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "x"}}}
    wished = {PREFERRED: [{"weight": 7, "podAffinityTerm": term}]}
    terms = {REQUIRED: [term]} if kind == "required" else wished
    refusing.raw["spec"]["affinity"] = {"podAntiAffinity": terms}
    cluster.put_pod(refusing)
    newcomer = make_pod("newcomer").label(app="x").request(cpu="1")
    assert cluster.is_kept(newcomer, times=3)
    for zones in ("z1", "z1"), ("z1", "z2"), ("z3", "z2"):
        for node, zone in zip("ab", zones, strict=True):
            cluster.put_node(node, **{ZONE: zone})
            cluster.is_kept(newcomer, times=2)


def test_a_refusal_that_begins_to_count_when_its_node_gets_the_topology_label():
    """Nobody was refused anywhere, so the plugin had nothing to say; that may change unseen."""
    cluster = Cluster()
    cluster.put_node("a")
    cluster.put_node("b", **{ZONE: "z1"})
    refusing = make_pod("refusing").on("a").request(cpu="1")
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "x"}}}
    refusing.raw["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [term]}}
    cluster.put_pod(refusing)
    newcomer = make_pod("newcomer").label(app="x").request(cpu="1")
    assert cluster.is_kept(newcomer, times=3)
    cluster.put_node("a", **{ZONE: "z0"})
    cluster.is_kept(newcomer)


def test_a_question_that_is_first_asked_while_catching_up():
    """Pods that differ in labels share an evaluation only as long as nobody asks for the labels."""
    cluster = Cluster()
    cluster.put_node("a", **{ZONE: "z0"})
    cluster.put_node("b", **{ZONE: "z1"})
    cluster.put_pod(make_pod("placed").label(index="1").on("a").request(cpu="1"))
    first = make_pod("first").label(index="0").request(cpu="1")
    second = make_pod("second").label(index="1").request(cpu="1")
    assert cluster.is_kept(first, times=3)
    assert cluster.is_kept(second)
    cluster.put_service(index="1")
    cluster.is_kept(first)
    cluster.is_kept(second)


@pytest.mark.parametrize("limit", range(2, 9))
def test_codes_that_get_another_meaning_while_an_evaluation_is_verified(limit, monkeypatch):
    monkeypatch.setattr(VerdictTable, "LIMIT", limit)
    cluster = Cluster(verified_share=1.0)
    cluster.put_node("a")
    messages = []
    for number in range(6):
        # Other pods' verdicts fill the table.
        cluster.put_pod(make_pod(f"other-{number}").request(**{f"example.com__{number}": "1"}))
        cluster.put_pod(make_pod(f"large-{number}").request(cpu="100"))
        messages += [
            instruction.message
            for instruction in cluster.core.handle(Schedule(NOW, 10))
            if isinstance(instruction, PatchCondition) and "large" in instruction.name
        ]
    assert messages == ["0/1 nodes are available: 1 Insufficient cpu."] * 6
