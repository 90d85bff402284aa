"""A pod that is deleted, updated or bound by somebody else, at every point of its way.

Whatever happens where: once all answers are in, the core is to believe what a core believes that
was only ever told what the API server has now.
"""

import msgspec
import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.framework.plugin import Reservation
from k8s_scheduler.core.messages.incoming import PodChanged
from k8s_scheduler.core.messages.outgoing import Bind, PatchObject, RecordEvent
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import promised
from tests.unit.core.engine.sagas import SagaHarness, check_room, hold, state_of, writes
from tests.unit.core.harness import only

A = PodUid("uid-a")


def pod(version=1):
    """Return the pod on its way; every version but the first is without the promise."""
    built = make_pod("a").request(cpu="2").version(version)
    return promised(built, "n1") if version == 1 else built


class Journey:
    """A pod with a promise, a reserved volume and a room of its own, as far as a point."""

    def __init__(self, point: str) -> None:
        self.point = point
        self.bench = SagaHarness("One")
        self.bench.node(make_node("n1").obj())
        self.bench.node(make_node("n2").cordoned().obj())
        self.bench.pod(make_pod("old").request(cpu="1").on("n1").obj())
        self.bench.object(Kind.PERSISTENT_VOLUME, "v", metadata={"resourceVersion": "1"})
        self.bench["One"].line("reserve", Reservation(((Kind.PERSISTENT_VOLUME, self.taken()),)))
        getattr(self, f"until_{point.replace('-', '_')}")()
        check_room(self.bench.core)

    def taken(self):
        """Return the volume as it will be once the pod has it."""
        found = inside(self.bench.core).cache.objects.get(Kind.PERSISTENT_VOLUME, "", "v")
        metadata = msgspec.structs.replace(found.metadata, labels={"taken": "yes"})
        return msgspec.structs.replace(found, metadata=metadata)

    def is_assumed(self):
        return [a is not None for *_, a in inside(self.bench.core).cache.objects.entries()] == [
            True
        ]

    # Points

    def until_queued(self):
        self.bench.pod(pod().obj())
        assert self.bench.place("a") == "active"
        assert self.bench.promise_of("a") == "n1"

    def until_parked(self):
        self.bench.node(make_node("n1").cordoned().obj())
        self.bench.pod(pod().obj())
        self.bench.settle()
        assert self.bench.place("a") == "unschedulable"

    def until_backing_off(self):
        self.bench["One"].line("permit", ValueError("broken"))
        self.bench.pod(pod().obj())
        self.bench.settle()
        self.bench["One"].line("permit", None)
        assert self.bench.place("a") == "backoff"

    def until_permit_waiting(self):
        self.bench["One"].line("permit", hold(60))
        self.set_out("waiting")

    def until_pre_binding(self):
        self.bench["One"].line("pre_bind", writes("v", "w"))
        self.set_out("pre-binding")

    def until_half_pre_bound(self):
        self.until_pre_binding()
        self.bench.answer(only(PatchObject, self.bench.out)[0])

    def until_waiting_for_objects(self):
        self.bench["One"].line("pre_bind", writes())
        self.bench["One"].line("pre_bound", False)  # noqa: FBT003
        self.set_out("pre-binding")

    def until_binding(self):
        self.set_out("binding")

    def set_out(self, phase):
        self.bench.pod(pod().obj())
        self.bench.settle()
        assert self.bench.phase("a") == phase
        assert self.bench.node_of("a") == "n1"
        assert self.is_assumed()

    # The end

    def late_answers(self, *, done):
        """Let every request of the past be answered at last."""
        bench = self.bench
        for request in only(PatchObject, bench.out):
            bench.answer(request, done=done, message="" if done else "too late")
        for bind in only(Bind, bench.out):
            bound = done and self.node_on_the_server() == bind.node
            bench.result(bind, bound=bound, message="" if bound else "it is not as it was")
            if bound:
                self.volume_is_seen()

    def volume_is_seen(self):
        """Let the watch show what was written for the pod."""
        metadata = {"resourceVersion": "2", "labels": {"taken": "yes"}}
        self.bench.object(Kind.PERSISTENT_VOLUME, "v", metadata=metadata)

    def node_on_the_server(self):
        versions = [m.pod for m in self.bench.told if isinstance(m, PodChanged) and m.uid == A]
        return versions[-1].spec.node_name if versions[-1] is not None else None

    def rest(self):
        """Let everything come to its end, what is parked included."""
        self.bench["One"].lines.clear()
        for seconds in (0, 20, 400):
            self.bench.tick(seconds)
            self.bench.settle()

    def is_as_if_new(self):
        """The core believes what a new one believes that hears of the cluster as it is."""
        check_room(self.bench.core)
        fresh = self.bench.fresh()
        fresh.settle()
        believed = state_of(self.bench.core)
        assert believed == state_of(fresh.core)
        return believed


POINTS = (
    "queued",
    "parked",
    "backing-off",
    "permit-waiting",
    "pre-binding",
    "half-pre-bound",
    "waiting-for-objects",
    "binding",
)
ON_THE_WAY = POINTS[3:]
EVENTS = {
    "deleted": lambda bench: bench.drop_pod(pod().obj()),
    "terminating": lambda bench: bench.pod(pod(2).deleting().obj()),
    "bound elsewhere": lambda bench: bench.pod(pod(2).on("n2").obj()),
    "bound there": lambda bench: bench.pod(pod(2).on("n1").obj()),
}


@pytest.mark.parametrize("done", [True, False], ids=["late success", "late failure"])
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("point", POINTS)
def test_a_pod_that_is_not_ours_to_place_any_more(point, event, done):
    journey = Journey(point)
    EVENTS[event](journey.bench)
    check_room(journey.bench.core)
    journey.late_answers(done=done)
    journey.rest()
    believed = journey.is_as_if_new()
    assert believed["pending"] == believed["flights"] == believed["promises"] == []


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("point", ON_THE_WAY)
def test_what_it_took_is_given_back_at_once(point, event):
    """Nobody has to wait for an answer, except where the API server may have bound it already."""
    journey = Journey(point)
    EVENTS[event](journey.bench)
    if point == "binding" and event != "deleted":
        assert journey.bench.phase("a") == "binding"
        return
    assert journey.bench.phase("a") is None
    assert not journey.is_assumed()
    assert journey.bench.calls("unreserve") == [("unreserve", "One", "a")]
    journey.late_answers(done=False)
    assert journey.bench.calls("unreserve") == [("unreserve", "One", "a")]


@pytest.mark.parametrize("point", POINTS[:3])
def test_an_update_in_the_queue_is_taken(point):
    journey = Journey(point)
    journey.bench.pod(pod(2).label(new="yes").obj())
    queued = inside(journey.bench.core).queue.get(A)
    assert queued.pod.metadata.labels == {"new": "yes"}
    assert journey.bench.promise_of("a") is None
    check_room(journey.bench.core)
    if point != "parked":
        journey.bench.tick(20)
        journey.bench.settle()
        assert journey.bench.phase("a") == "binding"


@pytest.mark.parametrize("point", ON_THE_WAY)
def test_an_update_on_the_way_stops_nothing_and_is_in_the_queue_after_a_failure(point):
    journey = Journey(point)
    bench = journey.bench
    bench.pod(pod(2).label(new="yes").obj())
    assert bench.phase("a") is not None
    assert journey.is_assumed()
    assert bench.calls("unreserve") == []
    bench["One"].lines["pre_bound", ""] = ValueError("broken")
    journey.late_answers(done=False)
    bench.tick(60)
    bench["One"].lines.clear()
    assert inside(bench.core).queue.get(A).pod.metadata.labels == {"new": "yes"}
    check_room(bench.core)
    assert not journey.is_assumed()
    fresh = bench.fresh()
    assert state_of(bench.core) == state_of(fresh.core)


@pytest.mark.parametrize("point", ON_THE_WAY)
def test_an_update_on_the_way_is_seen_by_the_plugins_that_come(point):
    journey = Journey(point)
    bench, seen = journey.bench, []
    bench.pod(pod(2).label(new="yes").obj())
    bench["One"].line("pre_bound", True)  # noqa: FBT003
    bench["One"].line("post_bind", lambda found: seen.append(found.metadata.labels))
    bench["One"].waiting.allow(A, "One")
    bench.tick(1)
    for request in only(PatchObject, bench.out):
        bench.answer(request)
    [bind] = only(Bind, bench.out)
    bench.result(bind)
    assert seen == [{"new": "yes"}]
    bench.pod(pod(3).on("n1").obj())
    journey.volume_is_seen()
    journey.rest()
    assert journey.is_as_if_new()["placed"] == [(A, "n1", False), ("uid-old", "n1", False)]


class TestBoundButNotSeenSo:
    """The API server has answered; the watch is behind."""

    @pytest.fixture
    def journey(self):
        journey = Journey("binding")
        [bind] = only(Bind, journey.bench.out)
        journey.bench.result(bind)
        assert journey.bench.node_of("a") == "n1"
        return journey

    @pytest.mark.parametrize("version", [pod(1), pod(2), pod(2).deleting()])
    def test_an_older_version_changes_nothing(self, journey, version):
        before = state_of(journey.bench.core)
        journey.bench.pod(version.obj())
        assert state_of(journey.bench.core) == before

    @pytest.mark.parametrize("event", ["deleted", "bound there", "bound elsewhere"])
    def test_the_watch_has_the_last_word(self, journey, event):
        EVENTS[event](journey.bench)
        journey.volume_is_seen()
        journey.rest()
        assert journey.is_as_if_new()["pending"] == []

    def test_a_second_answer_is_nobodys(self, journey):
        [bind] = only(Bind, journey.bench.out)
        assert journey.bench.result(bind, bound=False, message="no") == []
        assert journey.bench.node_of("a") == "n1"


def test_an_answer_to_an_older_bind_is_nobodys():
    journey = Journey("binding")
    bench = journey.bench
    [first] = only(Bind, bench.out)
    bench.result(first, bound=False, message="no")
    bench.tick(5)
    bench.settle()
    second = only(Bind, bench.out)[-1]
    assert second.attempt == 2
    for bound in (True, False):
        assert bench.result(first, bound=bound) == []
        assert bench.phase("a") == "binding"
    assert [e.reason for e in only(RecordEvent, bench.result(second))] == ["Scheduled"]


@pytest.mark.parametrize("luck", ["done", "failed", "late", "gone"])
@pytest.mark.parametrize("point", ON_THE_WAY)
def test_a_core_that_was_restored_goes_on_as_the_other_does(point, luck):
    journey = Journey(point)
    twin = journey.bench.twin()
    asked = [i for i in journey.bench.out if isinstance(i, Bind | PatchObject)]
    ends = [finish(core, asked, luck) for core in (journey.bench, twin)]
    assert ends[0] == ends[1]
    assert bool(ends[0]) == (luck != "gone")
    assert journey.bench.core.checkpoint() == twin.core.checkpoint()


def finish(core, asked, luck):
    """Bring a pod's way to an end; return all that was done about it."""
    start, done = len(core.out), luck == "done"
    core["One"].lines["pre_bound", ""] = done
    if luck == "gone":
        core.drop_pod(pod().obj())
    if luck != "late":
        core["One"].waiting.allow(A, "One")
        for request in only(PatchObject, asked):
            core.answer(request, done=done, message="" if done else "no")
    core.tick(1)
    core.object(Kind.PERSISTENT_VOLUME, "v", metadata={"resourceVersion": "2"})
    for bind in only(Bind, asked + core.out[start:]):
        core.result(bind, bound=done, message="" if done else "no")
    core.node(make_node("n3").obj())
    core.tick(60)
    core.settle()
    return core.out[start:]


def test_a_pod_of_the_same_name_is_another_pod():
    journey = Journey("permit-waiting")
    bench = journey.bench
    bench.drop_pod(pod().obj())
    bench["One"].lines.clear()
    bench.pod(make_pod("a").uid("uid-second").request(cpu="2").obj())
    bench.settle()
    bench["One"].waiting.allow(A, "One")
    [bind] = only(Bind, bench.out)
    assert bind.uid == "uid-second"
    check_room(bench.core)


@pytest.mark.parametrize("point", ON_THE_WAY)
def test_the_node_goes_away_meanwhile(point):
    """The room stays counted until the attempt ends; then nothing of it is left."""
    journey = Journey(point)
    bench = journey.bench
    bench.drop_node("n1")
    check_room(bench.core)
    assert bench.phase("a") is not None
    bench.drop_pod(pod().obj())
    bench.drop_pod(make_pod("old").obj())
    assert "n1" not in {name for _, name in inside(bench.core).cache.nodes.used_rows()}
    journey.rest()
    journey.is_as_if_new()
