"""What a core decides, from messages to instructions."""

import pytest

from k8s_scheduler.core.builtins import BUILT_INS
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.registry import Registration
from k8s_scheduler.core.messages.outgoing import Bind, EventType, PatchCondition, RecordEvent
from k8s_scheduler.core.plugins.default_binder import DefaultBinder
from k8s_scheduler.core.plugins.node_name import NodeName
from k8s_scheduler.core.plugins.node_unschedulable import NodeUnschedulable
from k8s_scheduler.core.setup import Setup
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import Harness, only, profile


class TestPlacement:
    """A pod goes to the best node that takes it."""

    def test_binds_to_the_only_node_that_fits(self):
        h = Harness()
        h.node(make_node("small").offers(cpu="1", memory="1Gi", pods="10").obj())
        h.node(make_node("large").offers(cpu="8", memory="1Gi", pods="10").obj())
        h.pod(make_pod("a").request(cpu="2").obj())
        (bind,) = h.binds()
        assert (bind.name, bind.node, bind.attempt) == ("a", "large", 1)

    def test_prefers_the_least_allocated_node(self):
        h = Harness()
        for name in ("n1", "n2", "n3"):
            h.node(make_node(name).obj())
        h.pod(make_pod("x").on("n1").request(cpu="1", memory="1Gi").obj())
        h.pod(make_pod("y").on("n3").request(cpu="100m", memory="1Gi").obj())
        h.pod(make_pod("a").request(cpu="100m").obj())
        (bind,) = h.binds()
        assert bind.node == "n2"

    def test_counts_what_it_has_just_decided(self):
        h = Harness()
        h.node(make_node("n1").offers(cpu="1", memory="8Gi", pods="10").obj())
        h.node(make_node("n2").offers(cpu="1", memory="8Gi", pods="10").obj())
        for name in ("a", "b", "c"):
            h.pod(make_pod(name).request(cpu="600m").obj())
        binds = h.binds()
        assert sorted(b.node for b in binds) == ["n1", "n2"]
        assert len(inside(h.core).queue) == 1

    def test_counts_the_pods_of_other_schedulers_and_leaves_them_alone(self):
        h = Harness()
        h.node(make_node("n1").offers(cpu="1", memory="8Gi", pods="10").obj())
        h.pod(make_pod("foreign").scheduler("other").on("n1").request(cpu="600m").obj())
        h.pod(make_pod("waiting").scheduler("other").request(cpu="100m").obj())
        h.pod(make_pod("mine").request(cpu="600m").obj())
        assert h.binds() == []
        assert h.events() == [
            ("mine", "FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu.")
        ]

    def test_serves_every_profile_under_its_own_name(self):
        h = Harness(Setup(profiles=(profile("one"), profile("two"))))
        h.node(make_node("n1").obj())
        h.pod(make_pod("a").scheduler("one").obj())
        h.pod(make_pod("b").scheduler("two").obj())
        h.pod(make_pod("c").scheduler("three").obj())
        assert {b.name for b in h.binds()} == {"a", "b"}

    def test_higher_priority_goes_first(self):
        h = Harness()
        h.node(make_node("n1").offers(cpu="1", memory="8Gi", pods="1").obj())
        h.pod(make_pod("low").obj())
        h.pod(make_pod("high").priority(10).obj())
        (bind,) = h.binds()
        assert bind.name == "high"

    def test_equal_nodes_share_the_load_and_a_replay_decides_the_same(self):
        chosen = []
        for _ in range(2):
            h = Harness()
            for i in range(10):
                h.node(make_node(f"n{i}").offers(cpu="1000", memory="800Gi", pods="500").obj())
            for i in range(50):
                h.pod(make_pod(f"p{i}").uid(f"u{i}").obj())
            chosen.append([b.node for b in h.binds()])
        assert chosen[0] == chosen[1]
        assert len(set(chosen[0])) == 10


class TestRejection:
    """A pod that fits nowhere says why, in kube-scheduler's words."""

    def test_without_nodes(self):
        h = Harness()
        h.pod(make_pod("a").obj())
        h.schedule()
        assert h.events() == [("a", "FailedScheduling", "no nodes available to schedule pods")]

    def test_every_reason_is_counted(self):
        h = Harness()
        h.node(make_node("n1").cordoned().obj())
        h.node(make_node("n2").taint("k").obj())
        h.node(make_node("n3").offers(cpu="1", memory="1Mi", pods="0").obj())
        h.node(make_node("n4").offers(cpu="1", memory="1Gi", pods="10").obj())
        h.pod(make_pod("a").request(cpu="2", memory="512Mi").obj())
        out = h.schedule()
        message = (
            "0/4 nodes are available: 1 Insufficient memory, 1 Too many pods, "
            "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu."
        )
        (event,) = only(RecordEvent, out)
        assert (event.type, event.action, event.note) == (
            EventType.WARNING,
            "Scheduling",
            message,
        )
        (patch,) = only(PatchCondition, out)
        assert (patch.reason, patch.message) == ("Unschedulable", message)

    def test_condition_is_not_written_again_when_it_says_the_same(self):
        message = "0/1 nodes are available: 1 Insufficient cpu."
        h = Harness()
        h.node(make_node("n1").obj())
        h.pod(make_pod("a").request(cpu="5").condition("Unschedulable", message).obj())
        out = h.schedule()
        assert only(PatchCondition, out) == []
        assert [e.note for e in only(RecordEvent, out)] == [message]

    def test_a_cordoned_node_is_left_to_pods_that_tolerate_it(self):
        h = Harness()
        h.node(make_node("n1").obj())
        h.node(make_node("n2").cordoned().obj())
        h.node(make_node("n3").cordoned().obj())
        h.pod(make_pod("a").tolerates("node.kubernetes.io/unschedulable", operator="Exists").obj())
        h.pod(make_pod("b").obj())
        assert {b.name: b.node for b in h.binds()}["b"] == "n1"

    def test_a_bad_quantity_is_told_and_does_not_stop_the_others(self):
        h = Harness()
        h.node(make_node("n1").obj())
        h.node(make_node("n2").offers(cpu="many", memory="1Gi", pods="1").obj())
        h.pod(make_pod("bad").request(cpu="1x").obj())
        h.pod(make_pod("good").request(cpu="1").obj())
        assert [b.name for b in h.binds()] == ["good"]
        ((_, reason, note),) = [e for e in h.events() if e[0] == "bad"]
        assert reason == "FailedScheduling"
        assert "'1x' is not a quantity" in note


class TestDeletingPods:
    """A pod on its way out is not placed."""

    def test_is_skipped_with_an_event(self):
        h = Harness()
        h.node(make_node("n1").obj())
        h.pod(make_pod("a").deleting().obj())
        assert only(Bind, h.schedule()) == []
        assert h.events() == [("a", "FailedScheduling", "skip schedule deleting pod: default/a")]


class TestPluginErrors:
    """A plugin that raises fails the pod's attempt, not the scheduler."""

    @pytest.fixture
    def broken(self):

        class Broken(NodeName):
            def prepare(self, pod, rows):
                if pod.requests.amount("memory"):
                    raise RuntimeError("boom")
                return super().prepare(pod, rows)

        plugins = dict(BUILT_INS, NodeName=Registration(Broken))
        return Harness(Setup(profiles=(profile(),), plugins=plugins))

    def test_others_are_placed_and_the_plugin_is_named(self, broken):
        broken.node(make_node("n1").obj())
        broken.pod(make_pod("victim").request(memory="1Gi").obj())
        broken.pod(make_pod("fine").obj())
        assert [b.name for b in broken.binds()] == ["fine"]
        ((_, _, note),) = [e for e in broken.events() if e[0] == "victim"]
        assert note == 'running PreFilter plugin "NodeName": RuntimeError: boom'

    def test_an_undeclared_read_is_an_error(self):

        class Curious(NodeUnschedulable):
            def filter(self, term, rows):
                return rows.column("pod_count")

        plugins = dict(BUILT_INS, NodeUnschedulable=Registration(Curious))
        h = Harness(Setup(profiles=(profile(),), plugins=plugins))
        h.node(make_node("n1").obj())
        h.pod(make_pod("a").obj())
        assert h.binds() == []
        ((_, _, note),) = h.events()
        assert "without declaring it in depends_on" in note


class TestBinders:
    """The bind plugins of a profile decide whether a pod is bound."""

    def test_a_pod_that_no_binder_takes_keeps_no_room(self):
        class Picky(DefaultBinder):
            def binds(self, pod):
                return pod.metadata.name != "mine"

        plugins = dict(BUILT_INS, DefaultBinder=Registration(Picky))
        h = Harness(Setup(profiles=(profile(),), plugins=plugins))
        h.node(make_node("n1").offers(cpu="1", memory="1Gi", pods="1").obj())
        h.pod(make_pod("mine").obj())
        h.pod(make_pod("other").obj())
        assert [b.name for b in h.binds()] == ["other"]
        assert h.events()[0][2] == "no bind plugin of the profile binds this pod"


class TestManyResources:
    """A pod may ask for any number of resources, of any name."""

    @pytest.mark.parametrize("count", [3, 61, 62, 63, 64, 70, 200])
    def test_every_shortage_counts(self, count):
        h = Harness()
        h.node(make_node("n1").obj())
        names = [f"example.com/r{i:03d}" for i in range(count)]
        h.pod(make_pod("a").request(**{name.replace("/", "__"): "1" for name in names}).obj())
        assert h.binds() == []
        ((_, _, note),) = h.events()
        assert note == (
            "0/1 nodes are available: " + ", ".join(f"1 Insufficient {n}" for n in names) + "."
        )

    def test_names_nobody_offers_leave_nothing_behind(self):
        h = Harness()
        h.node(make_node("n1").label(zone="a").obj())
        nodes = inside(h.core).cache.nodes
        columns = nodes._columns._columns
        before = len(columns), len(nodes.amounts._slots)
        for i in range(50):
            pod = make_pod(f"p{i}").request(**{f"example.com__r{i}": "1"})
            pod.raw["spec"]["nodeSelector"] = {f"key{i}": "x"}
            h.pod(pod.obj())
        h.schedule()
        assert (len(columns), len(nodes.amounts._slots)) == before

    def test_reasons_are_forgotten_between_decisions(self, monkeypatch):
        monkeypatch.setattr(VerdictTable, "LIMIT", 5)
        h = Harness()
        h.node(make_node("n1").obj())
        for i in range(20):
            h.pod(make_pod(f"p{i}").request(**{f"example.com__r{i}": "1"}).obj())
        h.schedule()
        assert [note for _, _, note in h.events()] == [
            f"0/1 nodes are available: 1 Insufficient example.com/r{i}." for i in range(20)
        ]
        assert len(inside(h.core).judge._verdicts._verdicts) <= 7

    @pytest.mark.parametrize("bound", ["ORDINARY", "ORDINARY_BYTES"], ids=["many", "long ones"])
    def test_reasons_of_pods_that_are_gone_are_forgotten_after_a_while(self, monkeypatch, bound):
        monkeypatch.setattr(VerdictTable, bound, 5)
        h = Harness()
        h.node(make_node("n1").obj())
        pods = [make_pod(f"p{i}").request(**{f"example.com__r{i}": "1"}) for i in range(20)]
        for pod in pods:
            h.pod(pod.obj())
        h.schedule()
        verdicts = inside(h.core).judge._verdicts
        assert len(verdicts._verdicts) > 20
        for pod in pods:
            h.drop_pod(pod.obj())
        for _ in range(40):
            h.tick(10.0)
        assert (len(verdicts._verdicts), verdicts.nbytes) == (1, 0)
        h.pod(pods[7].obj())
        h.schedule()
        assert h.events()[-1][2] == "0/1 nodes are available: 1 Insufficient example.com/r7."

    def test_what_was_known_of_shapes_is_not_read_by_codes_that_mean_something_else(
        self, monkeypatch
    ):
        monkeypatch.setattr(VerdictTable, "ORDINARY", 1)
        h = Harness()
        h.node(make_node("n1").obj())
        notes = []
        for i in (0, 1, 0, 1):
            for again in range(3):
                name = f"p{len(notes)}-{again}"
                h.pod(make_pod(name).request(**{f"example.com__r{i}": "1"}).obj())
                h.schedule()
            notes.append(h.events()[-1][2])
            for _ in range(40):
                h.tick(10.0)
        assert notes == [
            f"0/1 nodes are available: 1 Insufficient example.com/r{i}." for i in (0, 1, 0, 1)
        ]


class TestCondition:
    """What a pod says of itself since when."""

    def test_time_stands_while_the_status_stands(self):
        pod = make_pod("a").request(cpu="9").condition("Unschedulable", "something else")
        pod.raw["status"]["conditions"][0]["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        h = Harness()
        h.node(make_node("n1").obj())
        h.pod(pod.obj())
        (patch,) = only(PatchCondition, h.schedule())
        assert patch.last_transition_time == "2026-01-01T00:00:00Z"

    def test_time_is_now_when_it_becomes_false(self):
        h = Harness()
        h.pod(make_pod("a").obj())
        (patch,) = only(PatchCondition, h.schedule())
        assert patch.last_transition_time is None
