"""Another configuration, in one message: who moves, who stays, and who goes on as before."""

import dataclasses

import pytest

from k8s_scheduler.api.config.types import PluginUse
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.core.engine.reconfiguring import policy_of, settings_of
from k8s_scheduler.core.framework.plugin import Wait
from k8s_scheduler.core.framework.profile import ProfileError
from k8s_scheduler.core.messages.incoming import (
    ExtenderAnswer,
    Reconfigure,
    Restore,
    Schedule,
    Tick,
)
from k8s_scheduler.core.messages.outgoing import AskExtender, Bind, Log
from k8s_scheduler.core.queue.backoff import BackoffPolicy, QueuePolicy
from k8s_scheduler.core.queue.queued_pod import QueuePlace
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.builders import make_node, make_pod
from tests.fakes.extender import FakeExtender
from tests.inside import inside
from tests.unit.core.engine.sagas import SagaHarness, unwire, wire
from tests.unit.core.harness import Harness, only, profile

POLICY = QueuePolicy(BackoffPolicy())


def without(resolved, plugin, *, point="filter"):
    points = dict(resolved.points)
    points[point] = tuple(use for use in points[point] if use.name != plugin)
    return dataclasses.replace(resolved, points=points)


def swap(harness, *profiles, policy=POLICY):
    return harness.tell(Reconfigure(harness.now, profiles, settings_of(policy)))


def place(harness, name):
    queued = inside(harness.core).queue.get(name)
    return None if queued is None else queued.place


def full_node(harness):
    harness.node(make_node("n").offers(cpu="1", pods="9").obj())


class TestQueue:
    """Pods that wait."""

    def test_a_parked_pod_that_new_rules_let_pass_is_bound(self):
        h = Harness()
        full_node(h)
        h.pod(make_pod("big").uid("big").request(cpu="4").obj())
        h.schedule()
        assert place(h, "big") is QueuePlace.PARKED
        h.now += 20
        swap(h, without(profile(), "NodeResourcesFit"))
        (bind,) = h.binds()
        assert bind.node == "n"

    def test_a_parked_pod_still_has_to_wait_for_its_backoff(self):
        h = Harness()
        full_node(h)
        h.pod(make_pod("big").uid("big").request(cpu="4").obj())
        h.schedule()
        swap(h, without(profile(), "NodeResourcesFit"))
        assert place(h, "big") is QueuePlace.BACKOFF

    def test_a_profile_that_says_the_same_leaves_its_pods_where_they_are(self):
        h = Harness(Setup(profiles=(profile(), profile("other"))))
        full_node(h)
        h.pod(make_pod("big").uid("big").request(cpu="4").obj())
        h.pod(make_pod("far").uid("far").scheduler("other").request(cpu="4").obj())
        h.schedule()
        h.now += 20
        kept = inside(h.core).profiles["default-scheduler"]
        swap(h, profile(), without(profile("other"), "NodeResourcesFit"))
        assert place(h, "big") is QueuePlace.PARKED
        assert place(h, "far") is QueuePlace.ACTIVE
        assert inside(h.core).profiles["default-scheduler"] is kept

    def test_a_pod_that_nobody_serves_any_more_leaves_and_comes_back_when_told_of(self):
        h = Harness(Setup(profiles=(profile(), profile("other"))))
        pod = make_pod("p").uid("p").scheduler("other").obj()
        h.pod(pod)
        assert place(h, "p") is QueuePlace.ACTIVE
        swap(h, profile())
        assert place(h, "p") is None
        h.pod(pod)
        assert place(h, "p") is None
        swap(h, profile(), profile("other"))
        h.pod(pod)
        assert place(h, "p") is QueuePlace.ACTIVE

    def test_a_pod_that_leaves_takes_its_promise_along(self):
        h = Harness(Setup(profiles=(profile(), profile("other"))))
        full_node(h)
        pod = make_pod("p").uid("p").scheduler("other")
        pod.raw["status"]["nominatedNodeName"] = "n"
        h.pod(pod.obj())
        assert len(inside(h.core).cache.nominations) == 1
        swap(h, profile())
        assert len(inside(h.core).cache.nominations) == 0

    def test_another_order_holds_for_pods_that_were_there_before(self):
        h = Harness()
        h.pod(make_pod("big").uid("big").request(cpu="4").obj())
        h.pod(make_pod("small").uid("small").request(cpu="100m").obj())
        other = dataclasses.replace(
            profile(),
            points=dict(profile().points) | {"queueSort": (PluginUse("SmallRequestFirst"),)},
            plugin_args={"SmallRequestFirst": {"ageingSeconds": 60}},
        )
        swap(h, other)
        popped = [inside(h.core).queue.pop().uid for _ in range(2)]
        assert popped == ["small", "big"]

    def test_the_order_of_arrival_stays_where_nothing_else_counts(self):
        h = Harness()
        names = [f"p{i}" for i in range(20)]
        for name in names:
            h.pod(make_pod(name).uid(name).obj())
        swap(h, without(profile(), "NodeName"))
        assert [inside(h.core).queue.pop().uid for _ in names] == names

    def test_another_backoff_holds_for_pods_that_are_waiting(self):
        h = Harness()
        full_node(h)
        h.pod(make_pod("big").uid("big").request(cpu="4").obj())
        h.schedule()
        inside(h.core).queue.wake(inside(h.core).queue.get("big"), "test", now=h.now)
        before = inside(h.core).queue.get("big").backoff_expiry
        swap(h, profile(), policy=QueuePolicy(BackoffPolicy(initial_seconds=5.0)))
        assert place(h, "big") is QueuePlace.BACKOFF
        assert inside(h.core).queue.get("big").backoff_expiry == before + 4

    def test_gates_are_judged_again(self):
        h = Harness()
        h.pod(make_pod("gated").uid("gated").gate("wait").obj())
        h.pod(make_pod("free").uid("free").obj())
        assert place(h, "gated") is QueuePlace.GATED
        swap(h, without(profile(), "SchedulingGates", point="preEnqueue"))
        assert place(h, "gated") is QueuePlace.ACTIVE
        swap(h, profile())
        assert place(h, "gated") is QueuePlace.GATED
        assert place(h, "free") is QueuePlace.ACTIVE

    def test_settings_of_a_policy_are_the_policy(self):
        policy = QueuePolicy(BackoffPolicy(2.0, 7.0), parked_limit_seconds=9.0, max_attempts=4)
        assert policy_of(settings_of(policy)) == policy


class TestUnderWay:
    """Pods that are no longer in the queue when it happens."""

    def flying(self):
        h = SagaHarness("One", "Two")
        h.node(make_node("n").offers(cpu="8", pods="9").obj())
        h["One"].line("permit", Wait(100.0), pod="p")
        h.pod(make_pod("p").uid("p").obj())
        h.schedule()
        assert "p" in inside(h.core).flights
        (resolved,) = h.core.setup.profiles
        return h, resolved

    def land(self, h):
        """Let the pod that waits go on, and be bound."""
        h["One"].waiting.allow("p", "One")
        (bind,) = only(Bind, h.tell(Tick(h.now)))
        h.result(bind)

    def test_a_waiting_pod_goes_on_by_the_profile_it_began_with(self):
        h, resolved = self.flying()
        swap(h, without(resolved, "One", point="postBind"))
        self.land(h)
        assert ("post_bind", "One", "p") in h.calls()

    def test_a_pod_that_sets_out_later_goes_by_the_new_one(self):
        h, resolved = self.flying()
        swap(h, without(resolved, "One", point="permit"))
        h.pod(make_pod("q").uid("q").obj())
        (bind,) = h.binds()
        assert bind.name == "q"
        assert ("permit", "One", "q") not in h.calls()
        assert ("permit", "Two", "q") in h.calls()

    def test_a_pod_whose_name_is_served_no_more_is_still_bound(self):
        h, resolved = self.flying()
        swap(h, dataclasses.replace(resolved, scheduler_name="other"))
        self.land(h)
        assert "p" not in inside(h.core).flights

    def test_one_that_fails_then_does_not_come_back(self):
        h, resolved = self.flying()
        swap(h, dataclasses.replace(resolved, scheduler_name="other"))
        h["One"].waiting.reject("p", "One", "no")
        h.tick()
        assert place(h, "p") is None
        assert len(inside(h.core).queue) == 0

    def test_one_that_is_turned_away_by_old_rules_is_tried_by_the_new_ones(self):
        h, resolved = self.flying()
        h.now += 30
        swap(h, without(resolved, "One", point="permit"))
        h["One"].waiting.reject("p", "One", "no")
        h.tick()
        assert place(h, "p") in (QueuePlace.ACTIVE, QueuePlace.BACKOFF)

    def test_a_checkpoint_knows_the_configurations_of_long_ago(self):
        h, resolved = self.flying()
        swap(h, without(resolved, "Two", point="permit"))
        swap(h, without(resolved, "One", point="permit"))
        twin = Scheduler(h.core.setup)
        restore = Restore(h.now, h.core.checkpoint())
        twin.handle(unwire.decode(wire.encode(restore)))
        assert twin.checkpoint() == h.core.checkpoint()
        assert [e.generation for e in twin.checkpoint().earlier] == [0]

    def test_what_nobody_goes_by_any_more_is_forgotten(self):
        h, resolved = self.flying()
        swap(h, without(resolved, "One", point="permit"))
        self.land(h)
        assert h.core.checkpoint().earlier == ()

    def test_kinds_that_waiting_pods_need_are_still_read(self):
        h, _ = self.flying()
        assert Kind.PERSISTENT_VOLUME in h.core.kinds
        swap(h, profile())
        assert Kind.PERSISTENT_VOLUME in h.core.kinds
        self.land(h)
        assert h.core.kinds == ()

    def test_a_suspended_decision_begins_anew(self):
        h = Harness(Setup(profiles=(profile(),), extenders=(FakeExtender(),)))
        full_node(h)
        h.pod(make_pod("p").uid("p").label(extended="yes").obj())
        (first,) = only(AskExtender, h.schedule())
        swap(h, without(profile(), "NodeName"))
        assert len(inside(h.core).state.suspensions) == 0
        assert place(h, "p") is QueuePlace.ACTIVE
        late = ExtenderAnswer(h.now, first.uid, first.attempt, first.request, nodes=first.nodes)
        assert h.tell(late) == []
        (again,) = only(AskExtender, h.schedule())
        assert (again.attempt, again.request) == (first.attempt, first.request + 1)


class TestMessage:
    """The message itself."""

    def test_one_that_cannot_be_run_changes_nothing(self):
        h = Harness()
        h.pod(make_pod("p").uid("p").obj())
        before = h.core.checkpoint()
        broken = without(profile("other"), "DefaultBinder", point="bind")
        with pytest.raises(ProfileError, match="at least one bind plugin"):
            swap(h, broken)
        assert h.core.checkpoint() == before
        assert h.core.setup.profiles == (profile(),)

    def test_twice_is_as_good_as_once(self):
        h = Harness()
        full_node(h)
        h.pod(make_pod("p").uid("p").request(cpu="4").obj())
        h.schedule()
        swap(h, without(profile(), "NodeName"))
        first = h.core.checkpoint()
        swap(h, without(profile(), "NodeName"))
        second = h.core.checkpoint()
        assert second.queue == first.queue
        assert second.generation == first.generation + 1

    def test_it_says_what_has_changed(self):
        h = Harness()
        (said,) = swap(h, profile(), profile("other"))
        assert isinstance(said, Log)
        assert said.fields["changed"] == "other"

    def test_it_survives_a_recording(self):
        message = Reconfigure(1.0, (profile(), profile("other")), settings_of(POLICY))
        assert unwire.decode(wire.encode(message)) == message

    def test_a_new_scheduler_made_from_the_setup_decides_the_same(self):
        h = Harness()
        swap(h, without(profile("other"), "NodeResourcesFit"))
        fresh = Harness(h.core.setup)
        for each in (h, fresh):
            full_node(each)
            each.pod(make_pod("p").uid("p").scheduler("other").request(cpu="4").obj())
        assert h.tell(Schedule(h.now, 9)) == fresh.tell(Schedule(fresh.now, 9)) != []
