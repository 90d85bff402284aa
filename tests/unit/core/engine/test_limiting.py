"""Pods that ask for too much wait and are told; placed pods and nodes count with what is within."""

import dataclasses

import msgspec
import pytest

from k8s_scheduler.api.config.limits import NodeLimits, PodLimits
from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.meta import Condition
from k8s_scheduler.api.pod import PodStatus
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.engine.limiting import OverLimitError
from k8s_scheduler.core.engine.reconfiguring import settings_of
from k8s_scheduler.core.framework.views import pod_view
from k8s_scheduler.core.messages.incoming import Reconfigure, Restore
from k8s_scheduler.core.messages.outgoing import Bind, Log, PatchCondition, RecordEvent
from k8s_scheduler.core.queue import queued_pod
from k8s_scheduler.core.queue.queued_pod import QueuePlace
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import Harness, only, profile

LIMITS = PodLimits(labels=2, affinity_terms=2)
TEXT = (
    "pod has 3 labels, more than the limit of 2 (podLimits.labels); it is not tried until it asks "
    "for less or the scheduler's configuration allows more"
)


def harness(**setup):
    h = Harness(Setup(**{"profiles": (profile(),), "pod_limits": LIMITS, **setup}))
    h.node(make_node("n").offers(cpu="8", pods="99").obj())
    return h


def large(name="big", **labels):
    return make_pod(name).uid(name).label(a="1", b="2", c="3", **labels).obj()


def small(name="big"):
    return make_pod(name).uid(name).label(a="1").obj()


def place(h, name):
    queued = inside(h.core).queue.get(name)
    return None if queued is None else queued.place


class TestPendingPods:
    """Past a limit they are held like gated pods."""

    def test_one_is_gated_and_others_are_bound(self):
        h = harness()
        h.pod(large())
        h.pod(small("other"))
        assert [bind.name for bind in h.binds()] == ["other"]
        assert place(h, "big") is QueuePlace.GATED

    def test_it_is_told_once_by_event_and_condition(self):
        h = harness()
        h.pod(large())
        assert h.core.has_work
        told = h.schedule()
        assert [(e.reason, e.note) for e in only(RecordEvent, told)] == [("FailedScheduling", TEXT)]
        assert [(c.reason, c.message) for c in only(PatchCondition, told)] == [
            ("Unschedulable", TEXT)
        ]
        assert not h.core.has_work
        h.pod(msgspec.structs.replace(large(), status=PodStatus(phase="Pending")))
        h.tick(400)
        assert h.schedule() == []

    def test_one_that_says_so_already_is_not_told_again_by_the_next_leader(self):
        condition = Condition(
            type="PodScheduled", status="False", reason="Unschedulable", message=TEXT
        )
        h = harness()
        h.pod(msgspec.structs.replace(large(), status=PodStatus(conditions=[condition])))
        assert h.schedule() == []

    def test_nothing_is_said_before_somebody_is_asked_to_schedule(self):
        h = harness()
        h.pod(large())
        h.tick(5)
        assert only(RecordEvent, h.out) == only(PatchCondition, h.out) == []

    def test_many_are_told_in_steps(self):
        h = harness()
        for i in range(20):
            h.pod(large(f"p{i}"))
        assert len(only(RecordEvent, h.schedule())) == 16
        assert h.core.has_work
        assert len(only(RecordEvent, h.schedule())) == 4

    def test_no_shape_and_no_view_of_it_is_ever_worked_out(self, monkeypatch):
        def fail(*_args):
            raise AssertionError("work was done for a pod past a limit")

        h = harness()
        monkeypatch.setattr(queued_pod, "shape_of", fail)
        monkeypatch.setattr(pod_view, "pod_requests", fail)
        h.pod(large())
        h.schedule()
        h.pod(large(d="4"))
        h.tick(600)
        h.schedule()
        assert place(h, "big") is QueuePlace.GATED

    def test_gates_of_its_own_speak_for_themselves(self):
        h = harness()
        h.pod(make_pod("big").uid("big").label(a="1", b="2", c="3").gate("g").obj())
        assert h.schedule() == []

    def test_an_update_that_brings_it_within_lets_it_in(self):
        h = harness()
        h.pod(large())
        h.schedule()
        h.pod(small())
        assert [bind.name for bind in h.binds()] == ["big"]

    @pytest.mark.parametrize("cpu", ["1", "64"], ids=["active", "parked"])
    def test_an_update_that_takes_it_past_a_limit_holds_it(self, cpu):
        h = harness()
        h.pod(make_pod("big").uid("big").label(a="1").request(cpu=cpu).obj())
        if cpu == "64":
            h.schedule()
        h.pod(make_pod("big").uid("big").label(a="1", b="2", c="3").request(cpu=cpu).obj())
        assert place(h, "big") is QueuePlace.GATED
        assert h.binds() == []
        assert h.events()[-1][2] == TEXT

    def test_a_reload_that_raises_the_limit_lets_it_in(self):
        h = harness()
        h.pod(large())
        h.schedule()
        settings = settings_of(h.core.setup.queue)
        h.tell(Reconfigure(h.now, (profile(),), settings, PodLimits(labels=3), NodeLimits()))
        assert [bind.name for bind in h.binds()] == ["big"]
        assert h.core.setup.pod_limits == PodLimits(labels=3)

    def test_a_reload_that_lowers_the_limit_holds_what_waits(self):
        h = harness()
        h.pod(make_pod("a").uid("a").label(a="1", b="2").obj())
        settings = settings_of(h.core.setup.queue)
        h.tell(Reconfigure(h.now, (profile(),), settings, PodLimits(labels=1), NodeLimits()))
        assert h.binds() == []
        assert "more than the limit of 1" in h.events()[-1][2]

    def test_no_room_is_promised_to_it(self):
        h = harness()
        status = PodStatus(nominated_node_name="n")
        h.pod(msgspec.structs.replace(large(), status=status))
        assert inside(h.core).cache.nominations.node_of("big") is None
        h.pod(msgspec.structs.replace(small(), status=status))
        assert inside(h.core).cache.nominations.node_of("big") == "n"

    def test_judging_it_says_why_it_would_not_be_tried(self):
        with pytest.raises(OverLimitError, match=r"podLimits\.labels"):
            harness().core.judge(large())

    def test_a_restored_core_tells_what_was_not_told_and_nothing_else(self):
        h = harness()
        h.pod(large("told"))
        h.schedule()
        h.pod(large("untold"))
        again = Scheduler(h.core.setup)
        again.handle(Restore(h.now, h.core.checkpoint()))
        h.core, h.out = again, []
        h.schedule()
        assert [event[0] for event in h.events()] == ["untold"]


def held(h):
    return sum(len(terms) for terms in inside(h.core).cache.pods.held_terms._holders)


class TestPlacedObjects:
    """They can't wait outside."""

    def test_terms_past_the_limit_do_not_count_and_the_log_names_the_first_pod(self):
        h = harness()
        h.pod(avoiding("a", 5))
        h.pod(avoiding("b", 5, start=10))
        assert held(h) == 2 * LIMITS.affinity_terms
        ((_, fields),) = [(line.event, line.fields) for line in only(Log, h.out)]
        assert fields["pod"] == "default/a"
        assert "5 pod affinity and anti-affinity terms" in fields["has"]

    def test_a_namespace_is_logged_anew_once_all_of_its_were_gone(self):
        h = harness()
        for _ in range(2):
            h.pod(avoiding("a", 5))
            h.pod(avoiding("a", 5))
            h.drop_pod(avoiding("a", 5))
        assert len(only(Log, h.out)) == 2
        assert held(h) == 0

    def test_told_again_after_a_reload_it_counts_by_the_new_limit(self):
        h = harness()
        h.pod(avoiding("a", 5))
        settings = settings_of(h.core.setup.queue)
        h.tell(Reconfigure(h.now, (profile(),), settings, PodLimits(), NodeLimits()))
        h.pod(avoiding("a", 5))
        assert held(h) == 5

    def test_a_restored_core_holds_what_the_first_held(self):
        h = harness()
        h.pod(avoiding("a", 5))
        before = held(h)
        again = Scheduler(dataclasses.replace(h.core.setup, pod_limits=PodLimits()))
        again.handle(Restore(h.now, h.core.checkpoint()))
        h.core = again
        assert held(h) == before

    def test_a_victim_takes_only_those_terms_with_it_that_count(self):
        profiles = default_configuration(known_plugins()).profiles
        h = harness(profiles=profiles)
        # Terms 0 and 1 count; the third, which alone picks the newcomer, does not.
        h.pod(avoiding("placed", 3))
        h.pod(make_pod("new").uid("new").label(k="v2").obj())
        assert [bind.name for bind in h.binds()] == ["new"]

    def test_a_node_offers_what_is_within_and_takes_only_pods_that_tolerate_everything(self):
        h = Harness(Setup(profiles=(profile(),), node_limits=NodeLimits(taints=2)))
        node = make_node("n").offers(cpu="8", pods="9")
        for i in range(3):
            node = node.taint(f"k{i}")
        h.node(node.obj())
        tolerant = make_pod("three").uid("three")
        for i in range(3):
            tolerant = tolerant.tolerates(key=f"k{i}", operator="Exists")
        h.pod(tolerant.obj())
        h.pod(make_pod("all").uid("all").tolerates(operator="Exists").obj())
        assert [bind.name for bind in h.binds()] == ["all"]
        assert "untolerated taint(s)" in h.events()[0][2]
        assert [line.fields["node"] for line in only(Log, h.out)] == ["n"]


def avoiding(name, count, *, start=0):
    """Return a placed pod that keeps pods with label k=v0, k=v1, ... off its node."""
    terms = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"k": f"v{i}"}}}
        for i in range(start, start + count)
    ]
    made = make_pod(name).uid(name)
    made.raw["spec"]["nodeName"] = "n"
    made.raw["spec"]["affinity"] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    }
    return made.obj()


def test_gauges_show_how_many_are_past_which_limit_now():
    metrics = Metrics()
    setup = Setup(profiles=(profile(),), pod_limits=LIMITS, node_limits=NodeLimits(resources=1))
    h = Harness()
    h.core = Scheduler(setup, metrics=metrics.scheduler)
    h.node(make_node("n").offers(cpu="8", pods="99").obj())
    h.pod(large("a"))
    h.pod(large("b"))
    h.pod(avoiding("c", 9))
    h.tick(1)

    def shown():
        value = metrics.registry.get_sample_value
        pods = "k8s_scheduler_pods_over_limit"
        return (
            value(pods, {"limit": "podLimits.labels", "place": "pending"}),
            value(pods, {"limit": "podLimits.affinityTerms", "place": "placed"}),
            value("k8s_scheduler_nodes_over_limit", {"limit": "nodeLimits.resources"}),
        )

    assert shown() == (2, 1, 1)
    h.drop_pod(large("a"))
    h.pod(small("b"))
    h.drop_pod(avoiding("c", 9))
    h.drop_node("n")
    h.tick(1)
    assert shown() == (0, 0, 0)
    assert only(Bind, h.out) == []
