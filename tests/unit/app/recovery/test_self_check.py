"""What is wrong in memory is found, named, counted and put right; what is right is left alone."""

import asyncio
import dataclasses
import logging

import pytest

from k8s_scheduler.api.config.extras import BatchSettings
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.resources import pod_requests
from k8s_scheduler.app.configuration.apply import introduce
from k8s_scheduler.app.driver.executor import Carrier
from k8s_scheduler.app.driver.pump import Pump
from k8s_scheduler.app.driver.watch_set import WatchSet
from k8s_scheduler.app.recovery.core_check import CoreCheck
from k8s_scheduler.app.recovery.self_check import SelfCheck
from k8s_scheduler.core.engine.checks.holdings import Holdings
from k8s_scheduler.core.messages.incoming import NodeChanged, ObjectChanged, PodChanged, Schedule
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.kube.errors import NotSent
from k8s_scheduler.kube.resources import NODES, PODS, resource_of
from k8s_scheduler.kube.watch.comparing import Discrepancy, NotComparableError
from k8s_scheduler.kube.write.binding import BindFailure, BindOutcome
from k8s_scheduler.kube.write.pod_reader import ReadOutcome
from k8s_scheduler.lib.slices import silent_meter
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import profile

CLASS = Kind.STORAGE_CLASS


async def asked_before_all_is_known(scene, informer):
    """Ask for a comparison while one informer is not complete; return the task that does it."""
    informer.synced.clear()
    task = asyncio.create_task(scene.check.run())
    await asyncio.sleep(0)
    scene.check.ask()
    await turns()
    assert scene.comparers[scene.nodes].calls == 0
    return task


async def turns():
    """Let everything run that is ready."""
    for _ in range(50):
        await asyncio.sleep(0)


class Informer:
    """A store, and what it is told to do."""

    def __init__(self, resource):
        self.resource = resource
        self.store = {}
        self.synced = asyncio.Event()
        self.synced.set()
        self.dropped = asyncio.Event()
        self.is_absent = False
        self.lists = 0

    async def relist(self):
        self.lists += 1


class Comparer:
    def __init__(self):
        self.answers = []
        self.calls = 0

    async def compare(self):
        self.calls += 1
        answer = self.answers.pop(0) if self.answers else []
        if isinstance(answer, Exception):
            raise answer
        return answer


class Scene:
    """A core with two nodes, pods on them and before them, and the informers it heard it from."""

    def __init__(self, interval_seconds=0.0):
        self.metrics = Metrics()
        self.core = Scheduler(Setup(profiles=(profile(),)), metrics=self.metrics.scheduler)
        carrier = Carrier(self, self, self, self)
        self.pump = Pump(self.core, carrier, clock=lambda: 1000.0, meter=silent_meter())
        self.nodes, self.pods = Informer(NODES), Informer(PODS)
        self.classes = Informer(resource_of(CLASS))
        self.comparers = {i: Comparer() for i in (self.nodes, self.classes, self.pods)}
        self.naps = []
        self.check = SelfCheck(
            CoreCheck(self.pump, WatchSet(self.nodes, self.pods, {CLASS: self.classes})),
            lambda: self.comparers,
            metrics=self.metrics.scheduler,
            interval_seconds=interval_seconds,
            sleep=self.nap,
            uniform=lambda: 0.5,
        )
        for name in ("n1", "n2"):
            self.put_node(make_node(name).version(5).obj())
        self.put_pod(make_pod("a").request(cpu="1").on("n1").version(6).obj())
        self.put_pod(make_pod("b").request(cpu="2").on("n2").version(7).obj())
        self.put_pod(make_pod("waits").request(cpu="900").version(8).obj())
        self.put_pod(make_pod("other").scheduler("another").version(9).obj())
        self.put_class("fast")
        self.core.handle(Schedule(1000.0, 10))

    def submit_condition(self, _patch):
        pass

    record = submit = submit_bind = submit_condition

    def may_land(self, _uid):
        return False

    async def nap(self, seconds):
        self.naps.append(seconds)
        await asyncio.Event().wait()

    def put_node(self, node):
        self.nodes.store[node.metadata.name] = node
        self.pump.node_changed(None, node)

    def put_pod(self, pod):
        self.pods.store[f"default/{pod.metadata.name}"] = pod
        self.pump.pod_changed(None, pod)

    def put_class(self, name):
        raw = {"metadata": {"name": name}, "provisioner": "x"}
        found = ObjectChanged(0.0, CLASS, "", name, raw)
        self.classes.store[name] = found.read()
        self.pump.object_changed(CLASS, None, self.classes.store[name])

    def forget_all(self):
        """Hear that the nodes and classes are gone, as informers do: the store, then the core."""
        while self.nodes.store:
            self.pump.node_changed(self.nodes.store.popitem()[1], None)
        while self.classes.store:
            self.pump.object_changed(CLASS, self.classes.store.popitem()[1], None)

    def drop_classes(self):
        self.comparers = {i: c for i, c in self.comparers.items() if i is not self.classes}
        self.classes.dropped.set()

    def count(self, name, **labels):
        return self.metrics.registry.get_sample_value(f"k8s_scheduler_{name}_total", labels) or 0

    def differences(self):
        kinds = ("nodes", "pods", "storageclasses", "amounts")
        return {k: v for k in kinds if (v := self.count("cache_differences", kind=k))}


@pytest.fixture
def scene():
    return Scene()


def said(caplog):
    """Return the objects that were named, by resource."""
    lines = [r for r in caplog.records if r.message == "Cache differs from the API server"]
    return {r.fields["resource"]: r.fields["objects"] for r in lines}


async def settled(scene):
    """Compare twice: whatever was found the first time is not there any more."""
    await scene.check.compare()
    before = scene.differences()
    await scene.check.compare()
    assert scene.differences() == before
    return before


async def test_a_world_that_is_right_is_left_alone(scene, caplog):
    caplog.set_level(logging.INFO)
    assert await settled(scene) == {}
    assert scene.count("cache_comparisons", result="same") == 2
    assert [i.lists for i in scene.comparers] == [0, 0, 0]
    assert said(caplog) == {}


class TestInformers:
    """Against the API server."""

    async def test_what_differs_is_named_counted_and_listed_anew(self, scene, caplog):
        scene.comparers[scene.pods].answers = [[Discrepancy("a/p", "its deletion was not seen")]]
        assert await settled(scene) == {"pods": 1}
        assert said(caplog) == {"pods": "a/p: its deletion was not seen"}
        assert (scene.pods.lists, scene.nodes.lists) == (1, 0)
        assert scene.count("cache_comparisons", result="different") == 1

    async def test_many_are_counted_and_some_named(self, scene, caplog):
        found = [Discrepancy(f"a/p{i}", "lost") for i in range(100)]
        scene.comparers[scene.pods].answers = [found]
        await scene.check.compare()
        assert scene.differences() == {"pods": 100}
        assert said(caplog)["pods"].count(";") == 19

    @pytest.mark.parametrize("error", [NotSent("refused"), NotComparableError("too far behind")])
    async def test_what_cannot_be_compared_is_said(self, scene, caplog, error):
        scene.comparers[scene.nodes].answers = [error]
        await scene.check.compare()
        assert str(error) in [r.fields["error"] for r in caplog.records if "error" in r.fields]
        assert scene.count("cache_comparisons", result="failed") == 1
        assert scene.comparers[scene.pods].calls == 1

    async def test_what_the_server_does_not_have_is_not_asked_for(self, scene):
        scene.classes.is_absent = True
        await scene.check.compare()
        assert scene.comparers[scene.classes].calls == 0


class TestCore:
    """Against the informers."""

    async def test_a_pod_that_takes_no_room(self, scene, caplog):
        scene.core.handle(PodChanged(1.0, PodUid("uid-a"), None))
        assert await settled(scene) == {"pods": 1}
        assert said(caplog) == {"pods": "default/a: it takes no room"}
        assert inside(scene.core).cache.node_of("uid-a") == "n1"

    async def test_a_pod_on_another_node(self, scene, caplog):
        wrong = make_pod("a").request(cpu="1").on("n2").version(6).obj()
        scene.core.handle(PodChanged(1.0, PodUid("uid-a"), wrong))
        assert await settled(scene) == {"pods": 1}
        assert said(caplog) == {"pods": "default/a: it takes room on n2"}
        assert inside(scene.core).cache.node_of("uid-a") == "n1"

    async def test_a_pod_of_another_version(self, scene):
        old = make_pod("a").request(cpu="3").on("n1").version(5).obj()
        scene.core.handle(PodChanged(1.0, PodUid("uid-a"), old))
        assert await settled(scene) == {"pods": 1}
        assert scene.core.holdings.pod_problem(scene.pods.store["default/a"]) == ""

    async def test_a_pod_that_is_gone(self, scene, caplog):
        scene.core.handle(
            PodChanged(1.0, PodUid("uid-x"), make_pod("x").request(cpu="1").on("n1").obj())
        )
        assert await settled(scene) == {"pods": 1}
        assert said(caplog) == {"pods": "default/x: it is gone"}
        assert inside(scene.core).cache.node_of("uid-x") is None

    async def test_a_pod_that_waits_and_is_gone(self, scene):
        del scene.pods.store["default/waits"]
        assert await settled(scene) == {"pods": 1}
        assert len(inside(scene.core).queue) == 0

    async def test_a_pod_that_waits_nowhere(self, scene, caplog):
        scene.core.handle(PodChanged(1.0, PodUid("uid-waits"), None))
        assert await settled(scene) == {"pods": 1}
        assert said(caplog) == {"pods": "default/waits: it waits nowhere"}
        assert len(inside(scene.core).queue) == 1

    async def test_nodes(self, scene, caplog):
        scene.core.handle(NodeChanged(1.0, NodeName("n1"), None))
        scene.core.handle(NodeChanged(1.0, NodeName("n2"), make_node("n2").version(1).obj()))
        scene.core.handle(NodeChanged(1.0, NodeName("n3"), make_node("n3").version(1).obj()))
        assert await settled(scene) == {"nodes": 3}
        assert said(caplog)["nodes"].split("; ") == [
            "n1: it is not known",
            "n2: another version of it is known",
            "n3: it is gone",
        ]
        assert len(inside(scene.core).cache.nodes) == 2

    async def test_other_objects(self, scene):
        scene.put_class("slow")
        scene.core.handle(ObjectChanged(1.0, CLASS, "", "fast", None))
        del scene.classes.store["slow"]
        assert await settled(scene) == {"storageclasses": 2}
        assert scene.core.holdings.object(CLASS, "", "fast") is not None
        assert scene.core.holdings.object(CLASS, "", "slow") is None

    @pytest.mark.parametrize("listing", ["nodes", "objects"])
    async def test_what_both_forgot_between_two_slices_is_no_difference(
        self, scene, monkeypatch, listing
    ):
        whole = getattr(Holdings, listing)

        def taken(*args):
            yield from whole(*args)
            # All were taken, and before the first is looked at, the watch tells of an end.
            scene.forget_all()

        monkeypatch.setattr(Holdings, listing, taken)
        assert await settled(scene) == {}

    async def test_what_cannot_be_read_is_left_out_on_purpose(self, scene):
        scene.put_pod(make_pod("odd").request(cpu="a lot").on("n1").version(8).obj())
        scene.put_node(make_node("strange").offers(cpu="many").version(8).obj())
        assert await settled(scene) == {}

    async def test_a_wrong_amount(self, scene, caplog):
        cache = inside(scene.core).cache
        right = cache.nodes.amounts.at(0), cache.nodes.amounts.at(1)
        cache.nodes.amounts.take(1, pod_requests(make_pod("z").request(cpu="500m").obj()), 1)
        assert await settled(scene) == {"amounts": 1}
        assert (cache.nodes.amounts.at(0), cache.nodes.amounts.at(1)) == right
        (line,) = [r for r in caplog.records if r.message == "what pods take was counted wrong"]
        assert line.fields == {"node": "n2"}

    async def test_pods_on_their_way_are_no_difference(self, scene):
        scene.put_pod(make_pod("c").request(cpu="1").version(9).obj())
        scene.core.handle(Schedule(1000.0, 10))
        assert scene.core.binding_count == 1
        assert await settled(scene) == {}

    @pytest.mark.parametrize("told", ["a Binding", "a reading"])
    async def test_a_pod_that_was_read_to_be_gone_is_no_difference(self, scene, told):
        """The watch, which may be minutes behind, tells of its end later."""
        uid = PodUid("uid-waits")
        if told == "a Binding":
            scene.pump.bind_ended(
                BindOutcome(uid, 1, "n1", bound=False, reason=BindFailure.GONE, message="gone")
            )
        else:
            scene.core.handle(PodChanged(1.0, uid, None))
            scene.pump.pod_read(ReadOutcome(uid, 1, None))
        assert await settled(scene) == {}
        assert len(inside(scene.core).queue) == 0
        # News of it counts, whatever was read: from then on it is compared as all others are.
        scene.put_pod(make_pod("waits").request(cpu="900").version(20).obj())
        scene.core.handle(PodChanged(1.0, uid, None))
        assert await settled(scene) == {"pods": 1}

    async def test_pods_that_a_reload_is_about_to_tell_of_are_no_difference(self, scene):
        setup = scene.core.setup
        other = dataclasses.replace(profile(), scheduler_name="another")
        setup = dataclasses.replace(setup, profiles=(*setup.profiles, other))
        new = scene.pump.reconfigure(setup, BatchSettings())
        assert new == {"another"}
        assert await settled(scene) == {}
        await introduce(scene.pump, new, scene.pods.store)
        assert await settled(scene) == {}
        scene.core.handle(PodChanged(1.0, PodUid("uid-other"), None))
        assert await settled(scene) == {"pods": 1}


class TestTimes:
    async def test_it_is_done_when_asked_with_a_dump(self, scene, caplog):
        caplog.set_level(logging.INFO)
        task = asyncio.create_task(scene.check.run())
        await asyncio.sleep(0)
        assert scene.naps == []
        scene.check.ask()
        await turns()
        assert scene.count("cache_comparisons", result="same") == 1
        task.cancel()
        lines = {r.message: r.fields for r in caplog.records}
        assert lines["Dump of cache and scheduling queue"]["pods"] == 2
        assert lines["Dump of cached NodeInfo"] == {
            "node": "n2",
            "deleted": False,
            "requested_cpu": 2000,
            "requested_memory": 0,
            "requested_pods": 1,
            "allocatable_cpu": 4000,
            "allocatable_memory": 8 * 2**30,
            "allocatable_pods": 110,
            "scheduled_pods": 1,
        }
        assert lines["Dump of scheduling queue"] == {
            "pod": "default/waits",
            "queue": "unschedulable",
            "attempts": 1,
            "rejected_by": "NodeResourcesFit",
        }

    async def test_it_is_done_every_so_often(self):
        scene = Scene(interval_seconds=600.0)
        woken = asyncio.Event()

        async def nap(seconds):
            scene.naps.append(seconds)
            await woken.wait()
            woken.clear()

        scene.check._sleep = nap
        task = asyncio.create_task(scene.check.run())
        for _ in range(2):
            await turns()
            woken.set()
        await turns()
        task.cancel()
        assert scene.naps[:2] == [600.0, 600.0]
        assert scene.count("cache_comparisons", result="same") == 2

    async def test_what_is_dropped_before_it_was_known_is_waited_for_no_longer(self, scene):
        task = await asked_before_all_is_known(scene, scene.classes)
        scene.drop_classes()
        await turns()
        assert scene.comparers[scene.nodes].calls == 1
        assert scene.count("cache_comparisons", result="same") == 1
        task.cancel()

    @pytest.mark.parametrize(
        "answer", [[Discrepancy("fast", "it was not seen")], NotComparableError("behind")]
    )
    async def test_of_what_is_dropped_meanwhile_nothing_is_said(self, scene, answer, caplog):
        comparer = scene.comparers[scene.classes]
        comparer.answers.append(answer)
        inner = comparer.compare

        async def compare():
            scene.drop_classes()
            return await inner()

        comparer.compare = compare
        await scene.check.compare()
        assert comparer.calls == 1
        assert scene.classes.lists == 0
        assert scene.count("cache_comparisons", result="same") == 1
        assert "Cache differs" not in caplog.text
        assert "could not be compared" not in caplog.text

    async def test_the_core_is_not_told_again_of_what_is_dropped(self, scene):
        scene.drop_classes()
        scene.pump.object_changed(CLASS, scene.classes.store["fast"], None)
        await scene.check.compare()
        assert list(scene.pump.core.holdings.objects(CLASS)) == []
        assert scene.count("cache_comparisons", result="same") == 1

    async def test_not_before_everything_is_known(self, scene):
        task = await asked_before_all_is_known(scene, scene.pods)
        scene.pods.synced.set()
        await turns()
        assert scene.comparers[scene.nodes].calls == 1
        task.cancel()
