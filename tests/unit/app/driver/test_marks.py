"""Which pods are marked, by whom, and what the next leader makes of it."""

import asyncio
import threading

import pytest

from k8s_scheduler.app.driver.marks import LONG_SECONDS, MOST_MARKS, NOTE, Marks, PodMark, encode
from k8s_scheduler.app.recovery import sentinel
from k8s_scheduler.app.recovery.sentinel import TIDY_SECONDS, Sentinel
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.kube.lease.lease import LeaseConfig, LeaseStore, annotation_of
from tests.builders import make_pod
from tests.fakes.clock import virtual_time
from tests.fakes.transport import status
from tests.unit.kube.elector_seat import LEASE, Seat, acquire


class Hand:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def queued(name):
    return QueuedPod(make_pod(name).uid(name).obj(), timestamp=0.0)


@pytest.fixture
def clock():
    return Hand()


@pytest.fixture
def marks(clock):
    return Marks("me", clock)


class TestMarks:
    """A mark stands as long as a decision may end the process."""

    def test_ordinary_decisions_are_not_marked(self, marks, clock):
        marks.begin(queued("a"))
        clock.now += LONG_SECONDS / 2
        assert marks.wanted() == {}
        marks.end()
        clock.now += 10
        assert marks.wanted() == {}

    def test_a_long_one_is_marked_until_it_ends(self, marks, clock):
        marks.begin(queued("a"))
        clock.now += LONG_SECONDS
        assert marks.wanted() == {"a": PodMark("default/a", 0, "me")}
        marks.end()
        assert marks.wanted() == {}

    def test_the_next_decision_of_the_same_batch_has_a_time_of_its_own(self, marks, clock):
        marks.begin(queued("a"))
        clock.now += 1
        marks.begin(queued("b"))
        assert marks.wanted() == {}
        clock.now += 1
        assert list(marks.wanted()) == ["b"]

    def test_what_another_was_trying_counts_as_one_death_more(self, marks):
        text = encode({"a": PodMark("n/a", 0, "dead"), "b": PodMark("n/b", 2, "dead")})
        assert marks.take_over(text) == {"a": 1, "b": 3}
        assert marks.wanted() == {"a": PodMark("n/a", 1), "b": PodMark("n/b", 3)}

    def test_what_was_only_remembered_is_remembered_as_it_was(self, marks):
        assert marks.take_over(encode({"a": PodMark("n/a", 2)})) == {"a": 2}

    @pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', '{"a": {"deaths": "x"}}'])
    def test_nonsense_is_named_in_the_log_and_ignored(self, marks, caplog, text):
        assert marks.take_over(text) == {}
        assert "Cannot read which pods were being tried" in caplog.text

    def test_one_in_quarantine_is_tried_only_once_the_mark_is_written(self, marks):
        marks.take_over(encode({"a": PodMark("n/a", 0, "dead")}))
        assert not marks.announce("a")
        assert marks.wanted() == {"a": PodMark("n/a", 1, "me")}
        marks.written = marks.wanted()
        assert marks.announce("a")

    def test_one_that_was_tried_is_forgotten(self, marks):
        marks.take_over(encode({"a": PodMark("n/a", 0, "dead"), "b": PodMark("n/b", 1)}))
        marks.announce("a")
        marks.begin(queued("a"))
        marks.end()
        assert marks.wanted() == {"b": PodMark("n/b", 1)}

    def test_those_that_are_gone_are_forgotten(self, marks):
        marks.take_over(encode({"a": PodMark("n/a", 1), "b": PodMark("n/b", 1)}))
        marks.keep(("b",))
        assert list(marks.wanted()) == ["b"]

    def test_there_are_so_many_at_the_most_and_the_one_being_tried_is_among_them(self, marks):
        marks.take_over(encode({f"p{i}": PodMark(f"n/p{i}", i) for i in range(1, 40)}))
        marks.announce("p1")
        wanted = marks.wanted()
        assert len(wanted) == MOST_MARKS
        assert list(wanted)[:2] == ["p1", "p39"]


class Scene:
    """A leader, its marks, and who writes them."""

    def __init__(self, clock, identity="me", api=None):
        self.clock = clock
        self.seat = Seat(identity, api)
        self.api = self.seat.api
        self.marks = Marks(identity, clock)
        config = LeaseConfig(name="kube-scheduler", namespace="kube-system", identity=identity)
        self.store = LeaseStore(self.api, namespace="kube-system", name="kube-scheduler")
        self.sentinel = Sentinel(self.marks, config, clock=clock)

    def try_for_long(self, name="a"):
        self.marks.begin(queued(name))
        self.clock.now += LONG_SECONDS

    def note(self):
        lease = self.api.object(LEASE)
        return (lease["metadata"].get("annotations") or {}).get("k8s-scheduler.io/pods-being-tried")


class TestSentinel:
    """It writes while the event loop stands still, and does no harm to the term."""

    @virtual_time
    async def test_it_asks_nothing_while_there_is_nothing_to_say(self, clock):
        scene = Scene(clock)
        await acquire(scene.seat.elector)
        asked = len(scene.api.requests)
        assert await scene.sentinel.look(scene.store)
        assert len(scene.api.requests) == asked

    @virtual_time
    async def test_a_mark_is_written_and_removed_and_the_leader_goes_on(self, clock):
        scene = Scene(clock)
        await acquire(scene.seat.elector)
        before = scene.seat.spec()
        scene.try_for_long()
        assert await scene.sentinel.look(scene.store)
        assert scene.note() == '{"a":{"pod":"default/a","by":"me"}}'
        # Nobody's term is longer for it.
        assert scene.seat.spec() == before
        scene.marks.end()
        await scene.sentinel.look(scene.store)
        assert scene.note() is not None
        clock.now += TIDY_SECONDS
        await scene.sentinel.look(scene.store)
        assert scene.note() is None
        # The elector meets a version that is not its own, and renews all the same.
        assert (await scene.seat.elector._claim.attempt(5.0)).name == "HELD"

    @virtual_time
    async def test_the_next_leader_finds_the_mark_by_its_own_write(self, clock):
        scene = Scene(clock)
        await acquire(scene.seat.elector)
        scene.try_for_long()
        await scene.sentinel.look(scene.store)
        other = Scene(clock, "other", scene.api)
        scene.seat.lose_to("")
        await acquire(other.seat.elector)
        lease = other.seat.elector.lease
        assert other.marks.take_over(annotation_of(lease, "k8s-scheduler.io/pods-being-tried")) == {
            "a": 1
        }
        assert await other.sentinel.look(other.store)
        assert scene.note() == '{"a":{"pod":"default/a","deaths":1}}'

    @pytest.mark.parametrize("answered", [True, False], ids=["answered", "without an answer"])
    @virtual_time
    async def test_marks_are_written_again_on_a_lease_that_was_deleted_and_remade(
        self, clock, answered
    ):
        scene = Scene(clock)
        elector = scene.seat.elector
        elector.on_write(lambda lease: scene.marks.seen(annotation_of(lease, NOTE)))
        await acquire(elector)
        scene.try_for_long()
        assert await scene.sentinel.look(scene.store)
        written = scene.note()
        assert (await elector._claim.attempt(5.0)).name == "HELD"
        scene.api.delete(LEASE)
        if answered:
            assert (await elector._claim.attempt(5.0)).name == "HELD"
        else:
            # It is made, and nothing is known of it until the next renewal.
            await scene.store.write(None, elector.lease.spec, timeout_seconds=1.0)
            assert (await elector._claim.attempt(5.0)).name == "HELD"
        assert scene.note() is None
        asked = len(scene.api.requests)
        assert await scene.sentinel.look(scene.store)
        assert scene.note() == written
        assert await scene.sentinel.look(scene.store)
        # Read and written once.
        assert len(scene.api.requests) == asked + 2

    @virtual_time
    async def test_who_leads_no_more_writes_nothing(self, clock):
        scene = Scene(clock)
        await acquire(scene.seat.elector)
        scene.seat.lose_to("other")
        scene.try_for_long()
        assert not await scene.sentinel.look(scene.store)
        assert scene.note() is None

    @pytest.mark.parametrize("refusal", [status(409, "Conflict"), status(500, "InternalError")])
    @virtual_time
    async def test_what_is_refused_is_tried_again(self, clock, refusal):
        scene = Scene(clock)
        await acquire(scene.seat.elector)
        scene.try_for_long()
        scene.api.script("PUT", LEASE, refusal)
        assert not await scene.sentinel.look(scene.store)
        assert await scene.sentinel.look(scene.store)
        assert scene.note() is not None


class Elsewhere:
    """Stands for a connection of the thread's own."""

    def __init__(self, _credentials, *, metrics):
        assert metrics is not None

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_error):
        return None


async def test_work_goes_on_in_its_thread_while_the_event_loop_stands_still(monkeypatch):
    async def credentials(kubeconfig):
        assert kubeconfig == "config"
        return object()

    monkeypatch.setattr(sentinel, "load_credentials", credentials)
    monkeypatch.setattr(sentinel, "ApiTransport", Elsewhere)
    began, ended = threading.Event(), threading.Event()

    async def work(transport):
        assert isinstance(transport, Elsewhere)
        began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    running = asyncio.create_task(sentinel.in_own_thread(work, "config"))
    await asyncio.sleep(0)
    # Nothing else runs on this loop meanwhile.
    assert began.wait(timeout=30)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()


async def test_a_thread_that_is_stopped_before_it_has_begun_does_nothing(monkeypatch):
    begun = []

    async def connected(work, _kubeconfig):
        begun.append(work)

    monkeypatch.setattr(sentinel, "_connected", connected)
    starts = []

    def hold_back(thread):
        starts.append(thread)

    monkeypatch.setattr(threading.Thread, "start", hold_back)
    running = asyncio.create_task(sentinel.in_own_thread(connected, ""))
    await asyncio.sleep(0)
    # The executor that waits for the thread to end has threads of its own.
    monkeypatch.undo()
    monkeypatch.setattr(sentinel, "_connected", connected)
    monkeypatch.setattr(threading.Thread, "join", lambda *_args: None)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (thread,) = starts
    monkeypatch.undo()
    monkeypatch.setattr(sentinel, "_connected", connected)
    thread.start()
    thread.join()
    assert begun == []
