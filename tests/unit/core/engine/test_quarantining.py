"""A pod that was being tried when a process ended is tried last, alone, and ever less often."""

import pytest

from k8s_scheduler.core.engine.quarantining import wait_seconds
from k8s_scheduler.core.messages.incoming import Quarantine, Restore
from k8s_scheduler.core.messages.outgoing import Log, RecordEvent
from k8s_scheduler.core.queue.queued_pod import QueuePlace
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_node, make_pod
from tests.unit.core.harness import Harness, only, profile


def pod(name, *, priority=0):
    return make_pod(name).uid(name).priority(priority).obj()


def scene(deaths=1, *, others=("other",)):
    """Return a core that leads since now, with a deadly pod of high priority and others."""
    h = Harness()
    h.node(make_node("n").offers(cpu="8", pods="99").obj())
    h.pod(pod("deadly", priority=1000))
    for name in others:
        h.pod(pod(name))
    h.tell(Quarantine(h.now, {"deadly": deaths}))
    h.tick(1)
    return h


def names(binds):
    return [bind.name for bind in binds]


class TestOrder:
    """Others come first, whatever the priorities."""

    def test_it_is_tried_when_nothing_else_can_be_and_alone(self):
        h = scene(others=("a", "b"))
        assert h.core.next_quarantined is None
        assert names(h.binds()) == ["a", "b"]
        assert h.core.next_quarantined == "deadly"
        h.pod(pod("late"))
        assert names(h.binds()) == ["late"]
        assert h.core.has_work
        assert names(h.binds()) == ["deadly"]
        assert not h.core.has_work

    def test_a_second_one_is_tried_by_another_message_the_less_deadly_first(self):
        h = scene(deaths=3, others=("second",))
        h.tell(Quarantine(h.now, {"second": 1}))
        h.tick(600)
        assert names(h.binds()) == ["second"]
        assert names(h.binds()) == ["deadly"]

    def test_a_rejected_pod_in_its_backoff_comes_before_it(self):
        h = scene(others=())
        h.pod(make_pod("waits").uid("waits").request(cpu="64").obj())
        h.schedule()
        h.node(make_node("n").offers(cpu="80", pods="99").obj())
        assert names(h.binds()) == ["waits"]

    def test_one_that_was_tried_and_survived_is_like_any_other(self):
        h = scene(others=())
        (bind,) = h.binds()
        h.result(bind, bound=False, message="refused")
        assert h.core.holdings.quarantined == ()
        h.tick(20)
        assert h.core.next_quarantined is None
        assert names(h.binds()) == ["deadly"]

    @pytest.mark.parametrize(
        ("deaths", "seconds"), [(1, 0), (2, 60), (3, 120), (4, 240), (8, 3600), (10**9, 3600)]
    )
    def test_the_more_processes_it_ended_the_longer_it_waits(self, deaths, seconds):
        assert wait_seconds(deaths) == seconds

    def test_it_is_not_tried_before_its_time(self):
        h = scene(deaths=2, others=())
        h.tick(58)
        assert not h.core.has_work
        assert h.binds() == []
        h.tick(1)
        assert names(h.binds()) == ["deadly"]

    def test_a_gated_one_is_quarantined_once_its_gate_is_open(self):
        h = Harness()
        h.node(make_node("n").offers(cpu="8", pods="99").obj())
        h.pod(make_pod("deadly").uid("deadly").gate("g").obj())
        h.tell(Quarantine(h.now, {"deadly": 2}))
        h.pod(pod("deadly"))
        h.tick(59)
        assert h.binds() == []
        h.tick(1)
        assert names(h.binds()) == ["deadly"]

    def test_one_that_is_changed_or_deleted_meanwhile_is_taken_as_it_is(self):
        h = scene(others=())
        h.pod(make_pod("deadly").uid("deadly").label(a="b").obj())
        assert h.core.next_quarantined is None
        h.tick(1)
        assert h.core.next_quarantined == "deadly"
        h.drop_pod(pod("deadly"))
        assert h.core.holdings.quarantined == ()
        assert not h.core.has_work


class TestTelling:
    """Users and operators learn of it."""

    def test_an_event_and_a_line_say_how_often_and_what_follows(self):
        h = scene(deaths=3)
        (event,) = only(RecordEvent, h.out)
        assert (event.name, event.reason, event.type) == ("deadly", "Quarantined", "Warning")
        assert event.note == (
            "a scheduler process ended 3 times while it tried this pod; it is tried when no other "
            "pod can be, and alone, not before 120 s from now"
        )
        (line,) = only(Log, h.out)
        assert line.fields == {"pod": "default/deadly", "deaths": 3, "wait_seconds": 120}

    def test_a_pod_that_does_not_wait_is_nobodys_business(self):
        h = Harness()
        assert h.tell(Quarantine(h.now, {"gone": 1})) == []
        assert h.core.holdings.quarantined == ()

    def test_the_gauge_shows_how_many_there_are(self):
        metrics = Metrics()
        h = Harness()
        h.core = Scheduler(Setup(profiles=(profile(),)), metrics=metrics.scheduler)
        h.pod(pod("deadly"))
        h.tell(Quarantine(h.now, {"deadly": 1}))
        h.tick(1)
        assert metrics.registry.get_sample_value("k8s_scheduler_quarantined_pods") == 1
        h.drop_pod(pod("deadly"))
        h.tick(1)
        assert metrics.registry.get_sample_value("k8s_scheduler_quarantined_pods") == 0


@pytest.mark.parametrize("deaths", [1, 2], ids=["due", "not due"])
def test_a_restored_core_goes_on_just_so(deaths):
    h = scene(deaths=deaths, others=())
    again = Scheduler(h.core.setup)
    again.handle(Restore(h.now, h.core.checkpoint()))
    assert again.checkpoint() == h.core.checkpoint()
    assert again.next_quarantined == h.core.next_quarantined
    queued = again._queue.get("deadly")
    assert queued is not None
    assert queued.place is QueuePlace.ACTIVE
