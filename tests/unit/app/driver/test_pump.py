"""The pump lets the core decide when it may, when there is room, and not otherwise."""

import asyncio
import itertools
from contextlib import asynccontextmanager

import msgspec
import pytest

from k8s_scheduler.api.config.extras import BatchSettings
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.storage.objects import PersistentVolumeClaim
from k8s_scheduler.api.workloads import ReplicaSet
from k8s_scheduler.app.driver.executor import Carrier
from k8s_scheduler.app.driver.marks import Marks
from k8s_scheduler.app.driver.pump import Decisions, Pump
from k8s_scheduler.core.messages.incoming import ObjectChanged, Tick
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.kube.write.binding import BindFailure, BindOutcome
from k8s_scheduler.lib.slices import SliceMeter, silent_meter
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import profile


class Desk:
    """Stands for dispatcher and recorder: takes what comes, has as much room as it says."""

    def __init__(self, room=1000):
        self.room = room
        self.binds = []
        self.conditions = []
        self.events = []

    def bind_room(self):
        return self.room - len(self.binds)

    def may_land(self, _uid):
        return False

    def submit_bind(self, request):
        self.binds.append(request)

    def submit_condition(self, patch):
        self.conditions.append(patch)

    def record(self, note):
        self.events.append(note)


@asynccontextmanager
async def pumping(desk, batch=None, meter=None, **parts):
    marks = parts.get("marks")
    witness = None if marks is None else marks.begin
    core = Scheduler(Setup(profiles=(profile(),)), witness=witness)
    meter = meter or silent_meter()
    if batch is not None:
        parts["batch"] = batch
    carrier = Carrier(desk, desk, desk, desk)
    decisions = Decisions(**parts)
    pump = Pump(core, carrier, clock=lambda: 1000.0, meter=meter, decisions=decisions)
    task = asyncio.create_task(pump.run())
    try:
        yield pump
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("batch", "milliseconds", "together"),
    [
        (BatchSettings(max_pods=3, max_milliseconds=20), 0, [3, 3, 1]),
        (BatchSettings(max_pods=6, max_milliseconds=20), 0, [6, 1]),
        (BatchSettings(max_pods=100, max_milliseconds=20), 0, [7]),
        (BatchSettings(max_pods=100, max_milliseconds=2), 1, [7]),
        # Decisions that take long are made one by one from then on.
        (BatchSettings(max_pods=100, max_milliseconds=2), 3, [4, 1, 1, 1]),
    ],
)
async def test_others_get_their_turn_after_so_many_decisions_or_so_much_time(
    batch, milliseconds, together
):
    desk = Desk()
    cpu = itertools.count()
    meter = SliceMeter(lambda _owner, _seconds: None, lambda: next(cpu) * milliseconds / 1000)
    async with pumping(desk, batch, meter) as pump:
        pump.node_changed(None, make_node("n1").obj())
        for i in range(7):
            pump.pod_changed(None, make_pod(f"p{i}").obj())
        pump.allow()
        seen = [0]
        for _ in range(20):
            await asyncio.sleep(0)
            seen.append(len(desk.binds))
        grown = [after - before for before, after in itertools.pairwise(seen)]
        assert [count for count in grown if count] == together


async def turn():
    for _ in range(20):
        await asyncio.sleep(0)


async def test_nothing_is_decided_before_it_is_allowed():
    desk = Desk()
    async with pumping(desk) as pump:
        pump.node_changed(None, make_node("n1").obj())
        pump.pod_changed(None, make_pod("a").obj())
        await turn()
        assert desk.binds == []
        pump.allow()
        await turn()
        assert [b.name for b in desk.binds] == ["a"]
        pump.forbid()
        pump.pod_changed(None, make_pod("b").obj())
        await turn()
        assert len(desk.binds) == 1


async def test_a_process_that_may_not_write_any_more_decides_nothing():
    """It was stopped for longer than its lease, and nobody has told it yet."""
    desk, leads = Desk(), [True]
    async with pumping(desk, may_decide=lambda: leads[0]) as pump:
        pump.node_changed(None, make_node("n1").obj())
        pump.allow()
        leads[0] = False
        pump.pod_changed(None, make_pod("a").obj())
        await turn()
        assert desk.binds == desk.events == []


async def test_decisions_stop_without_room_and_go_on_when_a_bind_ends():
    desk = Desk(room=6)
    async with pumping(desk) as pump:
        pump.allow()
        pump.node_changed(None, make_node("n1").obj())
        for i in range(12):
            pump.pod_changed(None, make_pod(f"p{i:02}").obj())
        await turn()
        # Two places are left: they are not worth it while others are under way.
        assert [b.name for b in desk.binds] == ["p00", "p01", "p02", "p03"]
        end_one(pump, desk)
        await turn()
        assert [b.name for b in desk.binds] == ["p01", "p02", "p03"]
        end_one(pump, desk)
        await turn()
        assert [b.name for b in desk.binds] == ["p02", "p03", "p04", "p05", "p06", "p07"]
        assert [(e.reason, e.reporting_controller) for e in desk.events] == [
            ("Scheduled", "default-scheduler")
        ] * 2


async def test_few_places_are_used_if_nothing_is_under_way():
    desk = Desk(room=2)
    async with pumping(desk) as pump:
        pump.allow()
        pump.node_changed(None, make_node("n1").obj())
        for i in range(4):
            pump.pod_changed(None, make_pod(f"p{i}").obj())
        await turn()
        for left in (["p1"], ["p2", "p3"]):
            end_one(pump, desk)
            await turn()
            assert [b.name for b in desk.binds] == left


async def test_a_namespace_that_is_held_back_leaves_the_room_to_others():
    desk = Desk(room=8)
    async with pumping(desk) as pump:
        pump.allow()
        pump.node_changed(None, make_node("n1").obj())
        pump.hold_back(("sick",))
        for i in range(8):
            pump.pod_changed(None, make_pod(f"s{i}").namespace("sick").priority(9).obj())
        for i in range(3):
            pump.pod_changed(None, make_pod(f"w{i}").namespace("well").obj())
        await turn()
        assert [b.name for b in desk.binds] == ["w0", "w1", "w2"]
        pump.hold_back(())
        await turn()
        assert len(desk.binds) == 7


async def test_room_that_is_made_without_an_end_is_used():
    desk = Desk(room=0)
    async with pumping(desk) as pump:
        pump.allow()
        pump.node_changed(None, make_node("n1").obj())
        pump.pod_changed(None, make_pod("p").obj())
        await turn()
        assert desk.binds == []
        desk.room = 10
        pump.room_made()
        await turn()
        assert [b.name for b in desk.binds] == ["p"]


def end_one(pump, desk):
    """Let the bind end that was submitted first."""
    done = desk.binds.pop(0)
    pump.bind_ended(BindOutcome(done.uid, done.attempt, done.node, bound=True))


async def test_a_pod_that_was_read_and_is_gone_is_not_tried_again():
    desk = Desk()
    async with pumping(desk) as pump:
        pump.allow()
        pump.node_changed(None, make_node("n1").obj())
        pod = make_pod("p").obj()
        pump.pod_changed(None, pod)
        await turn()
        done = desk.binds.pop()
        gone = BindFailure.GONE
        pump.bind_ended(BindOutcome(done.uid, done.attempt, done.node, bound=False, reason=gone))
        await turn()
        assert desk.binds == desk.conditions == desk.events == []
        assert pump.core.holdings.pod_problem(pod) == "it waits nowhere"


async def test_rejections_become_conditions_and_events():
    desk = Desk()
    async with pumping(desk) as pump:
        pump.allow()
        pod = make_pod("a").condition("Unschedulable", "before")
        pod.raw["metadata"]["generation"] = 3
        pod.raw["status"]["conditions"][0]["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        pump.pod_changed(None, pod.obj())
        await turn()
        (patch,) = desk.conditions
        assert patch.reason == "Unschedulable"
        assert patch.message == "no nodes available to schedule pods"
        assert patch.observed_generation == 3
        assert patch.last_transition_time == "2026-01-01T00:00:00Z"
        assert [(e.type, e.reason, e.regarding.name) for e in desk.events] == [
            ("Warning", "FailedScheduling", "a")
        ]


async def test_messages_are_recorded_before_they_are_handled():
    """A checkpoint that a rotation takes must not hold the message that comes after it."""
    desk, seen = Desk(), []
    core = Scheduler(Setup(profiles=(profile(),)))

    class Recording:
        def write(self, message):
            seen.append((type(message).__name__, len(inside(core).queue)))

        def answered(self, instructions):
            seen.append((instructions, len(inside(core).queue)))

    carrier, meter = Carrier(desk, desk, desk, desk), silent_meter()
    pump = Pump(core, carrier, clock=lambda: 1000.0, meter=meter, recording=Recording())
    pump.pod_changed(None, make_pod("a").obj())
    assert seen == [("PodChanged", 0), ([], 1)]


async def test_a_deleted_object_is_told_by_its_last_version():
    desk = Desk()
    async with pumping(desk) as pump:
        pump.allow()
        node, pod = make_node("n1").offers(cpu="1", memory="1Gi", pods="1").obj(), make_pod("a")
        pump.node_changed(None, node)
        pump.pod_changed(None, pod.obj())
        await turn()
        pump.pod_changed(pod.obj(), None)
        pump.pod_changed(None, make_pod("b").obj())
        await turn()
        assert [b.name for b in desk.binds] == ["a", "b"]
        pump.node_changed(node, None)
        pump.pod_changed(None, make_pod("c").obj())
        await turn()
        assert desk.events[-1].note == "no nodes available to schedule pods"


class Listener:
    """Stands for the core: writes down what it is told."""

    has_work = False

    def __init__(self):
        self.told = []

    def handle(self, message):
        self.told.append(message)
        return []


def listening():
    core, desk = Listener(), Desk()
    carrier = Carrier(desk, desk, desk, desk)
    pump = Pump(core, carrier, clock=lambda: 7.0, meter=silent_meter())
    return core, pump


def owner(version, *, app="a", generation=1):
    raw = {
        "metadata": {
            "name": "r",
            "namespace": "ns",
            "resourceVersion": version,
            "generation": generation,
        },
        "spec": {"selector": {"matchLabels": {"app": app}}},
    }
    return msgspec.convert(raw, ReplicaSet)


def claim(version):
    raw = {"metadata": {"name": "c", "namespace": "ns", "resourceVersion": version}}
    return msgspec.convert(raw, PersistentVolumeClaim)


async def test_objects_of_other_kinds_are_told_with_their_key():
    core, pump = listening()
    old, new = owner("1"), owner("2", app="b")
    pump.object_changed(Kind.REPLICA_SET, None, old)
    pump.object_changed(Kind.REPLICA_SET, old, new)
    pump.object_changed(Kind.REPLICA_SET, new, None)
    assert core.told == [
        ObjectChanged(7.0, Kind.REPLICA_SET, "ns", "r", told) for told in (old, new, None)
    ]


async def test_updates_of_what_nobody_reads_are_not_told():
    """As of an owner's status: its version moves with every pod that becomes ready."""
    core, pump = listening()
    pump.object_changed(Kind.REPLICA_SET, owner("1"), owner("2", generation=2))
    assert core.told == []


async def test_volumes_and_claims_are_told_in_every_version_because_they_are_written():
    core, pump = listening()
    pump.object_changed(Kind.PERSISTENT_VOLUME_CLAIM, claim("1"), claim("2"))
    (message,) = core.told
    assert message.object.metadata.resource_version == "2"


async def test_a_pod_in_quarantine_is_tried_after_all_others_once_its_mark_is_written():
    desk, marks = Desk(), Marks("me", lambda: 0.0)
    async with pumping(desk, marks=marks) as pump:
        pump.node_changed(None, make_node("n1").obj())
        pump.pod_changed(None, make_pod("deadly").uid("deadly").priority(9).obj())
        pump.pod_changed(None, make_pod("a").obj())
        pump.quarantine(marks.take_over('{"deadly": {"by": "dead"}}'))
        pump._tell(Tick(1000.0))
        pump.allow()
        await turn()
        assert [b.name for b in desk.binds] == ["a"]
        # Nobody waits for the mark but the pod itself.
        pump.pod_changed(None, make_pod("b").obj())
        await turn()
        assert [b.name for b in desk.binds] == ["a", "b"]
        marks.written = marks.wanted()
        pump._tell(Tick(1001.0))
        await turn()
        assert [b.name for b in desk.binds] == ["a", "b", "deadly"]
        assert marks.wanted() == {}


async def test_a_parked_pod_is_woken_while_one_in_quarantine_waits_for_its_mark():
    desk, marks = Desk(), Marks("me", lambda: 0.0)
    async with pumping(desk, marks=marks) as pump:
        pump.node_changed(None, make_node("n1").offers(cpu="1", pods="9").obj())
        pump.pod_changed(None, make_pod("deadly").uid("deadly").obj())
        pump.pod_changed(None, make_pod("parked").request(cpu="2").obj())
        pump.quarantine(marks.take_over('{"deadly": {"by": "dead"}}'))
        pump._tell(Tick(1000.0))
        pump.allow()
        await turn()
        assert desk.binds == []
        pump.node_changed(None, make_node("n2").offers(cpu="4", pods="9").obj())
        await turn()
        assert [b.name for b in desk.binds] == ["parked"]
