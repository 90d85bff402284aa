"""What parked pods say of themselves stays true without an attempt, within limits."""

import dataclasses
from collections import Counter

import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.core.engine.parked import renewals
from k8s_scheduler.core.engine.preemption import post_filter
from k8s_scheduler.core.messages.outgoing import Bind, Evict, Log, PatchCondition, RecordEvent
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FULL, FullHarness, claiming, near, pinned, promised, zoned
from tests.unit.core.harness import only

NOBODY = "preemption: 0/{n} nodes are available: {n} No preemption victims found for incoming pod."


class Bench(FullHarness):
    """A core whose metrics can be read, and whose reasons can be renewed at will."""

    def __init__(self, per_second: int = 20) -> None:
        super().__init__()
        self.metrics = Metrics()
        policy = dataclasses.replace(FULL.queue, renewals_per_second=per_second)
        self.setup = dataclasses.replace(FULL, queue=policy)
        self.core = Scheduler(self.setup, metrics=self.metrics.scheduler)

    def second(self) -> list[RecordEvent]:
        """Let a second pass, and all be done that is due; return the events."""
        before = len(self.out)
        self.tick(1.0)
        self.settle()
        return only(RecordEvent, self.out[before:])

    def notes(self) -> dict[str, str]:
        """Let a second pass; return what pods were told in it."""
        return {event.name: event.note for event in self.second()}

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0

    def rejected_by(self, plugin: str) -> float:
        labels = {"plugin": plugin, "profile": "default-scheduler"}
        return self.count("scheduler_unschedulable_pods", **labels)

    def renewed(self, result: str) -> float:
        return self.count("k8s_scheduler_reason_renewals_total", result=result)


@pytest.fixture
def h():
    return Bench()


def blue(name, cpu="20"):
    pod = make_pod(name).request(cpu=cpu)
    pod.raw["spec"]["nodeSelector"] = {"team": "blue"}
    return pod


@pytest.fixture
def labelled(h):
    """A pod that no node matched, and then one that is too small."""
    h.node(zoned("n1").obj())
    h.node(zoned("n2").obj())
    h.pod(blue("p").obj())
    h.settle()
    h.node(zoned("n1").label(team="blue").obj())
    return h


class TestWhatIsRenewed:
    def test_event_condition_and_gauge_follow_and_no_attempt_is_made(self, labelled):
        h = labelled
        assert (h.rejected_by("NodeAffinity"), h.rejected_by("NodeResourcesFit")) == (1, 0)
        before = len(h.out)
        h.tick(1.0)
        text = (
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node "
            "affinity/selector. preemption: 0/2 nodes are available: 2 Preemption is not helpful "
            "for scheduling."
        )
        (event,) = only(RecordEvent, h.out[before:])
        assert (event.reason, event.note, event.attempt) == ("FailedScheduling", text, 1)
        (patch,) = only(PatchCondition, h.out[before:])
        assert (patch.reason, patch.message) == ("Unschedulable", text)
        assert patch.nominated_node_name is None
        assert (h.rejected_by("NodeAffinity"), h.rejected_by("NodeResourcesFit")) == (1, 1)
        queued = inside(h.core).queue.get("uid-p")
        assert (queued.attempts, queued.unschedulable_count) == (1, 1)
        labels = {"result": "unschedulable", "profile": "default-scheduler"}
        assert h.count("scheduler_schedule_attempts_total", **labels) == 1
        assert h.count("scheduler_preemption_attempts_total") == 1
        assert h.renewed("told") == 1

    def test_it_is_told_once(self, labelled):
        assert set(labelled.notes()) == {"p"}
        assert labelled.notes() == {}
        assert labelled.notes() == {}

    def test_a_claim_that_comes_unbound(self, h):
        h.node(zoned("n").obj())
        h.object(Kind.STORAGE_CLASS, "s", provisioner="x", volumeBindingMode="Immediate")
        h.pod(claiming(make_pod("p"), "imm").obj())
        h.settle()
        assert 'persistentvolumeclaim "imm" not found' in h.events()[-1][2]
        spec = {"storageClassName": "s", "resources": {"requests": {"storage": "1Gi"}}}
        h.object(Kind.PERSISTENT_VOLUME_CLAIM, "imm", namespace="default", spec=spec)
        assert "pod has unbound immediate PersistentVolumeClaims" in h.notes()["p"]

    def test_a_taint_and_room_behind_it(self, h):
        h.node(zoned("n").obj())
        other = make_pod("other").request(cpu="4").on("n").obj()
        h.pod(other)
        h.pod(make_pod("p").request(cpu="1").obj())
        h.settle()
        assert "Insufficient cpu" in h.events()[-1][2]
        h.node(zoned("n").taint("k").obj())
        h.drop_pod(other)
        assert "untolerated taint(s)" in h.notes()["p"]
        assert (h.rejected_by("TaintToleration"), h.rejected_by("NodeResourcesFit")) == (1, 0)

    def test_the_number_of_nodes(self, h):
        h.node(zoned("n1").obj())
        h.pod(make_pod("p").request(cpu="9").obj())
        h.settle()
        h.node(zoned("n2").obj())
        assert h.notes()["p"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
        h.drop_node("n1")
        assert h.notes()["p"].startswith("0/1 nodes are available: 1 Insufficient cpu.")

    def test_the_last_node_vanishes_and_the_first_one_after_it_tries_the_pod(self, h):
        h.node(zoned("n1").obj())
        h.pod(make_pod("p").request(cpu="9").obj())
        h.settle()
        h.drop_node("n1")
        assert h.notes() == {"p": "no nodes available to schedule pods"}
        assert h.rejected_by("NodeResourcesFit") == 0
        h.node(zoned("n2").obj())
        assert h.notes()["p"].startswith("0/1 nodes are available")
        assert inside(h.core).queue.get("uid-p").attempts == 2

    def test_what_preemption_could_do(self, h):
        h.node(zoned("n1").obj())
        h.node(zoned("n2").obj())
        h.pod(make_pod("p").request(cpu="9").priority(10).obj())
        lesser = make_pod("lesser").priority(1).on("n1").obj()
        h.settle()
        assert h.events()[-1][2].endswith("2 Preemption is not helpful for scheduling.")
        h.node(zoned("n1", cpu="10").obj())
        h.pod(make_pod("vip").priority(99).request(cpu="8").on("n1").obj())
        h.pod(lesser)
        assert h.notes()["p"].endswith(
            "preemption: 0/2 nodes are available: 1 Insufficient cpu, "
            "1 Preemption is not helpful for scheduling."
        )

    def test_room_that_is_promised_to_another_counts(self, h):
        h.node(zoned("n").obj())
        h.node(zoned("far", cpu="1").taint("k").obj())
        h.pod(make_pod("other").request(cpu="2").on("n").obj())
        vip = promised(pinned(make_pod("vip").request(cpu="3").priority(5), "n"), "n")
        vip.raw["spec"]["preemptionPolicy"] = "Never"
        h.pod(vip.obj())
        h.pod(make_pod("q").request(cpu="2").obj())
        h.settle()
        assert h.parked() == ["vip", "q"]
        h.node(zoned("far", cpu="1").obj())
        assert h.notes()["q"].startswith("0/2 nodes are available: 2 Insufficient cpu.")

    def test_a_reason_that_comes_back_is_written_though_the_pod_shows_it_still(self, labelled):
        """The watch has shown the first condition, and not yet the one in between."""
        h = labelled
        first = only(PatchCondition, h.out)[-1]
        pod = blue("p").obj()
        shown = blue("p")
        shown.raw["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": first.reason,
                "message": first.message,
            }
        ]
        assert pod.metadata.uid == shown.obj().metadata.uid
        h.pod(shown.obj())
        assert set(h.notes()) == {"p"}
        h.node(zoned("n1").obj())
        before = len(h.out)
        h.tick(1.0)
        (patch,) = only(PatchCondition, h.out[before:])
        assert patch.message == first.message

    def test_nothing_is_renewed_where_it_is_switched_off(self):
        h = Bench(per_second=0)
        h.node(zoned("n1").obj())
        h.pod(blue("p").obj())
        h.settle()
        h.node(zoned("n1").label(team="blue").obj())
        assert h.notes() == {}
        assert not h.core.has_work


class TestWhoIsLeftAlone:
    def test_a_pod_that_is_leaving(self, labelled):
        labelled.pod(blue("p").deleting().obj())
        assert labelled.notes() == {}

    def test_a_pod_that_something_else_has_held_back(self, labelled):
        inside(labelled.core).queue.get("uid-p").told = 0
        assert labelled.notes() == {}

    def test_a_pod_for_which_others_are_told_to_leave(self, h):
        h.node(zoned("n").obj())
        h.pod(make_pod("low").request(cpu="4").on("n").obj())
        h.pod(make_pod("p").request(cpu="4").priority(10).obj())
        h.settle()
        assert only(Evict, h.out)
        h.node(zoned("n2").taint("k").obj())
        assert h.notes() == {}
        assert h.parked() == ["p"]


class TestWhoIsWokenInstead:
    def test_a_pod_that_could_preempt_because_of_something_elsewhere(self, h):
        h.node(zoned("n1").obj())
        h.node(zoned("n2").obj())
        h.pod(make_pod("low").request(cpu="4").on("n1").obj())
        h.pod(pinned(near(make_pod("p").request(cpu="1").priority(5), app="x"), "n1").obj())
        h.settle()
        assert h.parked() == ["p"]
        assert only(Evict, h.out) == []
        h.pod(make_pod("friend").label(app="x").on("n2").obj())
        h.second()
        assert [evict.victim.name for evict in only(Evict, h.out)] == ["low"]
        assert h.renewed("woken") + inside(h.core).queue.get("uid-p").attempts >= 2

    def test_a_pod_whose_promise_can_not_be_kept(self, h):
        """Nothing that waking looks at says so: the node it was promised is too small now."""
        h.node(zoned("n").obj())
        h.pod(make_pod("vip").request(cpu="3").priority(50).on("n").obj())
        h.pod(promised(make_pod("p").request(cpu="2").priority(10), "n").obj())
        assert inside(h.core).cache.nominations.node_of("uid-p") == "n"
        h.settle()
        # Its attempt has taken the promise back, and the status has yet to say so.
        h.pod(promised(make_pod("p").request(cpu="2").priority(10).version(2), "n").obj())
        assert inside(h.core).cache.nominations.node_of("uid-p") == "n"
        h.second()
        assert inside(h.core).cache.nominations.node_of("uid-p") is None
        assert h.renewed("woken") == 1

    def test_a_pod_that_fits_and_that_waking_has_missed(self, labelled, monkeypatch):
        h = labelled
        monkeypatch.setattr(inside(h.core).parked.waker, "_help_for", lambda *_: None)
        monkeypatch.setattr(inside(h.core).parked.waker, "sample", lambda: None)
        h.node(zoned("n2", cpu="32").label(team="blue").obj())
        h.second()
        (line,) = [log for log in only(Log, h.out) if "was not woken" in log.event]
        assert line.fields["node"] == "n2"
        assert h.count("k8s_scheduler_parked_but_feasible_total") == 1
        assert [bind.name for bind in only(Bind, h.out)] == ["p"]

    def test_nobody_is_bound_or_evicted_for_by_a_tick_alone(self, labelled):
        assert only(Bind | Evict, labelled.second()) == []


class TestCost:
    @pytest.fixture
    def judged(self, h, monkeypatch):
        """Count the judgements that renewals ask for, by pod."""
        seen = Counter()
        original = inside(h.core).cycle.diagnose

        def diagnose(profile, queued):
            seen[queued.pod.metadata.name] += 1
            return original(profile, queued)

        monkeypatch.setattr(inside(h.core).cycle, "diagnose", diagnose)
        return seen

    def crowd(self, h, pods, shapes):
        h.node(zoned("n1").obj())
        for number in range(pods):
            h.pod(blue(f"p{number}", cpu=str(20 + number % shapes)).obj())
        h.settle()
        assert len(h.parked()) == pods
        h.second()

    def test_a_shape_is_judged_once_however_many_pods_it_has(self, h, judged):
        self.crowd(h, 200, 2)
        judged.clear()
        h.node(zoned("n1").label(team="blue").obj())
        h.second()
        assert judged.total() == 2

    def test_nothing_is_judged_where_nothing_has_changed(self, h, judged):
        self.crowd(h, 20, 2)
        judged.clear()
        h.node(zoned("n1").obj())
        for _ in range(3):
            h.second()
        assert judged.total() == 0

    def test_an_attempt_of_one_pod_is_a_judgement_of_all_that_are_like_it(self, h, judged):
        self.crowd(h, 5, 1)
        judged.clear()
        h.node(zoned("n1").label(team="blue").obj())
        inside(h.core).queue.activate("uid-p0", now=h.now)
        h.schedule()
        assert set(h.notes()) == {"p1", "p2", "p3", "p4"}
        assert judged.total() == 0

    def test_priorities_of_one_shape_are_judged_apart(self, h, judged):
        h.node(zoned("n1").obj())
        for number in range(9):
            h.pod(blue(f"p{number}").priority(number % 3).obj())
        h.settle()
        h.second()
        judged.clear()
        h.node(zoned("n1").label(team="blue").obj())
        h.second()
        assert judged.total() == 3

    def test_only_so_many_are_judged_each_second_and_all_get_their_turn(self, h, judged):
        shapes = 250
        self.crowd(h, shapes, shapes)
        for _ in range(3):
            h.second()
        judged.clear()
        h.node(zoned("n1").label(team="blue").obj())
        seconds = 0
        while judged.total() < shapes:
            before = judged.total()
            h.second()
            seconds += 1
            assert judged.total() - before <= renewals.JUDGED_PER_SECOND
        assert seconds == 3
        assert set(judged.values()) == {1}

    def test_one_message_does_only_so_much(self, h, judged):
        self.crowd(h, 64, 64)
        judged.clear()
        h.node(zoned("n1").label(team="blue").obj())
        h.tick(1.0)
        assert judged.total() == renewals.WORK_PER_STEP
        assert h.core.has_work
        h.schedule()
        assert judged.total() == 2 * renewals.WORK_PER_STEP
        h.settle()
        assert judged.total() == 64

    def test_a_search_that_takes_more_than_one_step_goes_on_at_the_next(self, h, monkeypatch):
        for name in ("n1", "n2"):
            h.node(zoned(name).obj())
            h.pod(make_pod(f"low-{name}").on(name).obj())
        h.pod(make_pod("p").request(cpu="4").priority(9).obj())
        h.pod(make_pod("vip1").request(cpu="3").priority(99).on("n1").obj())
        h.pod(make_pod("vip2").request(cpu="3").priority(99).on("n2").obj())
        h.settle()
        monkeypatch.setattr(post_filter, "SEARCH_WORK", 15)
        monkeypatch.setattr(post_filter, "AT_ONCE", 1)
        for name in ("n1", "n2"):
            h.pod(make_pod(f"more-{name}").on(name).obj())
        h.node(zoned("n3").taint("k").obj())
        told = [h.notes() for _ in range(6)]
        assert h.renewed("search_put_off") >= 1
        (note,) = [notes["p"] for notes in told if notes]
        assert note.startswith("0/3 nodes are available: ")
