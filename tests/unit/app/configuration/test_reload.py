"""A changed configuration is taken, refused or found to be the same; on an API server in memory."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise

import pytest

from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.app.configuration import reload as reloading
from k8s_scheduler.app.configuration.apply import Swap
from k8s_scheduler.app.configuration.interpretation import interpret
from k8s_scheduler.app.configuration.offered import Offer, RefusedOffer, hash_of
from k8s_scheduler.app.configuration.reload import Reload
from k8s_scheduler.app.options import ConfigurationFlags, RunOptions
from k8s_scheduler.app.wiring import wire
from k8s_scheduler.core.setup import ProfileError
from k8s_scheduler.kube.resources import NODES
from k8s_scheduler.kube.watch.informer import all_synced
from k8s_scheduler.lib.aiotasks import Supervisor
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.api import FakeApi
from tests.fakes.clock import settle, virtual_time
from tests.inside import inside

HEAD = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
"""
SMALL = """\
  plugins:
    multiPoint:
      disabled: [{name: "*"}]
      enabled: [{name: PrioritySort}, {name: NodeName}, {name: DefaultBinder}]
"""
MAP = "/api/v1/namespaces/ns/configmaps/own"
PODS = "/api/v1/pods"


def text(*names, more=""):
    return HEAD + "profiles:\n" + "".join(f"- schedulerName: {n}\n{SMALL}" for n in names) + more


class Scene:
    """A daemon's graph with what follows the configuration, on an API server in memory."""

    def __init__(self, first, *, flags=None, refused=None, good=None):
        self.api = FakeApi()
        self.map = {"metadata": {"namespace": "ns", "name": "own"}, "data": {"config.yaml": first}}
        self.api.create("/api/v1/configmaps", self.map)
        self.metrics = Metrics()
        self.flags = flags or ConfigurationFlags(config_map=ConfigMapName("own", "ns"))
        good = first if refused is None else good or text("ours")
        self.options = RunOptions(
            configuration=interpret(self.flags, Offer("ns/own:config.yaml", good)),
            configuration_flags=self.flags,
            configuration_text=good,
            configuration_refused=refused,
        )
        self.graph = wire(self.options, self.api, self.metrics)
        self.tasks = Supervisor()
        self.swap = Swap(self.graph, self.options, self.tasks)
        self.reload = Reload(self.graph.reload, self.options, self.swap)

    @property
    def status(self):
        return self.graph.reload.status

    def put(self, changed):
        self.api.update(MAP, self.map | {"data": {"config.yaml": changed}})

    def count(self, result):
        name = "k8s_scheduler_config_reloads_total"
        return self.metrics.registry.get_sample_value(name, {"result": result})

    def value(self, name):
        return self.metrics.registry.get_sample_value(f"k8s_scheduler_config_{name}")

    def events(self):
        return [e["note"] for e in self.api.objects("/apis/events.k8s.io/v1/events").values()]

    def queued(self):
        return sorted(q.pod.metadata.name for q in inside(self.graph.pump.core).queue)

    async def look(self, *, asked=False):
        await settle(300)
        await self.reload.look(self.graph.reload.origin, asked=asked)
        await settle(300)


@pytest.fixture(autouse=True)
def no_threads(monkeypatch):
    """Virtual time does not wait for threads."""

    async def here(work, *args):
        return work(*args)

    monkeypatch.setattr(asyncio, "to_thread", here)


@asynccontextmanager
async def running(first, **options):
    scene = Scene(first, **options)
    graph = scene.graph
    for name, informer in (("nodes", graph.nodes), ("pods", graph.pods)):
        scene.tasks.start(name, informer.run())
    for informer in graph.watched.others.values():
        scene.tasks.start(informer.resource.plural, informer.run())
    scene.tasks.start("configuration", graph.reload.informer.run())
    scene.tasks.start("recorder", graph.recorder.run())
    scene.tasks.start("keeper", graph.reload.keeper.run())
    try:
        await settle(300)
        yield scene
        assert not scene.tasks.died.done()
    finally:
        await scene.tasks.stop()


def pod(name, scheduler):
    return {
        "metadata": {"namespace": "ns", "name": name},
        "spec": {"schedulerName": scheduler, "containers": []},
    }


@virtual_time
async def test_a_good_change_is_in_force_and_counted():
    async with running(text("ours")) as scene:
        scene.put(text("ours", "theirs", more="parallelism: 3\npodInitialBackoffSeconds: 4\n"))
        await scene.look()
        assert scene.graph.pump.core.scheduler_names == {"ours", "theirs"}
        assert inside(scene.graph.pump.core).queue._policy.backoff.initial_seconds == 4
        assert scene.graph.writes._pool.limit == 3
        assert (scene.count("applied"), scene.count("refused")) == (1, 0)
        assert scene.value("last_reload_successful") == 1
        shown = scene.status.page()["k8s-scheduler.io"]
        assert shown["hash"] == scene.status.hash
        assert "refused" not in shown


@virtual_time
async def test_the_same_text_is_looked_at_once_unless_somebody_asks():
    async with running(text("ours")) as scene:
        await scene.look()
        assert scene.count("unchanged") == 0
        await scene.look(asked=True)
        assert scene.count("unchanged") == 1


@virtual_time
async def test_a_text_that_means_the_same_swaps_nothing():
    async with running(text("ours")) as scene:
        generation = inside(scene.graph.pump.core).profiles.generation
        scene.put(text("ours", more="# a remark\n"))
        await scene.look()
        assert scene.count("unchanged") == 1
        assert inside(scene.graph.pump.core).profiles.generation == generation


@virtual_time
async def test_a_bad_change_is_refused_with_all_its_errors(caplog):
    async with running(text("ours")) as scene:
        before = scene.status.hash
        scene.put(text("ours", more="paralellism: 3\npodInitialBackoffSeconds: 0\n"))
        await scene.look()
        assert scene.status.hash == before
        assert scene.count("refused") == 1
        assert scene.value("last_reload_successful") == 0
        (note,) = scene.events()
        assert "2 errors" in note
        assert 'did you mean "parallelism"?' in note
        assert "podInitialBackoffSeconds" in note
        shown = scene.status.page()["k8s-scheduler.io"]
        assert len(shown["refused"]["errors"]) == 2
        assert shown["lastReloadSuccessful"] is False
        assert "the last good one stays in force" in caplog.text
        # It is said once, and what is right again is right.
        await scene.look()
        assert scene.count("refused") == 1
        scene.put(text("ours"))
        await scene.look()
        assert scene.value("last_reload_successful") == 1


@virtual_time
async def test_every_one_of_many_bad_changes_has_an_event_of_its_own():
    async with running(text("ours")) as scene:
        for number in range(60):
            scene.put(text("ours", more=f"parallelism: -{number + 1}\n"))
            await scene.look()
        assert scene.count("refused") == 60
        assert len(scene.events()) == 60


@virtual_time
async def test_a_config_map_that_goes_away_is_refused_and_missed():
    async with running(text("ours")) as scene:
        scene.api.delete(MAP)
        await scene.look()
        assert scene.status.refused.errors == ("ConfigMap ns/own does not exist",)
        assert scene.graph.pump.core.scheduler_names == {"ours"}
        (event,) = scene.api.objects("/apis/events.k8s.io/v1/events").values()
        assert "ConfigMap ns/own does not exist" in event["note"]
        regarding = event["regarding"]
        assert (regarding["kind"], regarding["name"]) == ("ConfigMap", "own")


@virtual_time
async def test_pods_that_are_served_from_now_on_are_found():
    async with running(text("ours")) as scene:
        scene.api.create(PODS, pod("a", "ours"))
        scene.api.create(PODS, pod("b", "theirs"))
        scene.api.create(PODS, pod("c", "nobodys"))
        await settle(300)
        assert scene.queued() == ["a"]
        scene.put(text("theirs"))
        await scene.look()
        assert scene.queued() == ["b"]
        scene.put(text("ours", "theirs"))
        await scene.look()
        assert scene.queued() == ["a", "b"]


@virtual_time
async def test_what_needs_a_restart_is_said_and_the_rest_holds(caplog):
    async with running(text("ours")) as scene:
        changed = text("theirs").replace("leaderElect: false", "leaderElect: true")
        scene.put(changed + "clientConnection: {qps: 5}\n")
        await scene.look()
        assert scene.graph.pump.core.scheduler_names == {"theirs"}
        assert scene.status.restart_needed == (
            "leaderElection.leaderElect",
            "clientConnection.qps",
        )
        assert scene.status.in_force.settings.leader_election.leader_elect is False
        assert scene.value("restart_needed") == 1
        assert "needs a restart" in caplog.text
        scene.put(text("theirs"))
        await scene.look()
        assert scene.value("restart_needed") == 0


class Deaf:
    """Has some kinds never answer, until it is over; knows when they were asked for."""

    def __init__(self, scene, *plurals):
        self.plurals = plurals
        self.over = False
        self.at = []
        self._watch = scene.graph.watch
        scene.graph.watch = self._watched

    def _watched(self, kind):
        informer = self._watch(kind)
        plural = informer.resource.plural
        if plural == "csinodes":
            self.at.append(asyncio.get_running_loop().time())
        if plural in self.plurals and not self.over:
            informer.synced = asyncio.Event()
        return informer


class TestKinds:
    """What plugins read is known before they decide, and let go when nobody reads it."""

    WIDE = HEAD + "profiles: [{schedulerName: ours}]\n"

    @virtual_time
    async def test_new_kinds_are_synced_before_the_swap(self):
        async with running(text("ours")) as scene:
            assert scene.graph.watched.others == {}
            scene.api.create("/api/v1/services", {"metadata": {"namespace": "ns", "name": "s"}})
            scene.put(self.WIDE)
            await scene.look()
            plurals = {informer.resource.plural for informer in scene.graph.watched.others.values()}
            assert "services" in plurals
            assert all(informer.synced.is_set() for informer in scene.graph.watched.others.values())
            assert all(plural in scene.tasks for plural in plurals)
            scene.put(text("ours"))
            await scene.look()
            assert scene.graph.watched.others == {}
            assert not any(plural in scene.tasks for plural in plurals)
            assert list(inside(scene.graph.pump.core).cache.objects.entries()) == []

    @virtual_time
    async def test_one_that_cannot_be_listed_refuses_the_change(self):
        async with running(text("ours")) as scene:
            Deaf(scene, "csinodes")
            scene.put(self.WIDE)
            await scene.look()
            assert scene.count("refused") == 1
            assert "csinodes.storage.k8s.io" in scene.status.refused.errors[0]
            assert scene.graph.watched.others == {}
            assert "csinodes" not in scene.tasks

    @virtual_time
    async def test_one_that_could_not_be_listed_is_tried_again_and_said_once(self, caplog):
        async with running(text("ours")) as scene:
            before = scene.status.hash
            tries = Deaf(scene, "csinodes")
            scene.tasks.start("reload", scene.reload.run())
            scene.put(self.WIDE)
            await asyncio.sleep(1000)
            # 30 s each, and between them 10, 20, 40, 80, 160 and then 300 s, up to a look more.
            assert len(tries.at) == 7
            gaps = [later - earlier for earlier, later in pairwise(tries.at)]
            for gap, pause in zip(gaps, (10, 20, 40, 80, 160, 300), strict=True):
                assert 30 + pause <= gap <= 30 + pause + reloading.LOOK_SECONDS
            assert scene.count("refused") == 1
            assert len(scene.events()) == 1
            assert caplog.text.count("the last good one stays in force") == 1
            assert scene.value("last_reload_successful") == 0
            assert scene.status.hash == before
            # The right is granted, the outage is over: nobody has to send a signal.
            tries.over = True
            await asyncio.sleep(reloading.LONGEST_RETRY_SECONDS + reloading.LOOK_SECONDS)
            assert scene.status.hash == hash_of(self.WIDE)
            assert (scene.count("applied"), scene.count("refused")) == (1, 1)
            assert scene.value("last_reload_successful") == 1
            # And that was the last try.
            made = len(tries.at)
            await asyncio.sleep(1000)
            assert len(tries.at) == made

    @virtual_time
    async def test_what_is_offered_meanwhile_ends_the_tries(self):
        async with running(text("ours")) as scene:
            tries = Deaf(scene, "csinodes")
            scene.tasks.start("reload", scene.reload.run())
            scene.put(self.WIDE)
            await asyncio.sleep(35)
            assert len(tries.at) == 1
            scene.put("nonsense")
            await asyncio.sleep(1000)
            assert len(tries.at) == 1
            assert scene.count("refused") == 2
            assert scene.status.refused.hash == hash_of("nonsense")

    @virtual_time
    async def test_who_asks_has_it_tried_at_once_and_gets_an_answer(self, caplog):
        async with running(text("ours")) as scene:
            tries = Deaf(scene, "csinodes")
            scene.put(self.WIDE)
            await scene.look()
            await scene.look()
            assert len(tries.at) == 1
            await scene.look(asked=True)
            assert len(tries.at) == 2
            assert caplog.text.count("the last good one stays in force") == 2

    @virtual_time
    async def test_what_is_missing_is_shown_as_it_is_by_now(self):
        async with running(text("ours")) as scene:
            tries = Deaf(scene, "csinodes", "services")
            scene.tasks.start("reload", scene.reload.run())
            scene.put(self.WIDE)
            await asyncio.sleep(35)
            (error,) = scene.status.refused.errors
            assert "csinodes" in error
            assert "services" in error
            tries.plurals = ("csinodes",)
            await asyncio.sleep(45)
            (error,) = scene.status.refused.errors
            assert "csinodes" in error
            assert "services" not in error

    @virtual_time
    async def test_who_waits_for_a_kind_does_so_no_longer_when_it_is_let_go(self):
        async with running(text("ours")) as scene:
            # One that does not answer, and one that is not even asked for yet.
            kinds = (Kind.SERVICE, Kind.CSI_NODE)
            scene.graph.watched.others |= {kind: scene.graph.watch(kind) for kind in kinds}
            deaf, idle = scene.graph.watched.others.values()
            scene.tasks.start("services", asyncio.Event().wait())
            waiting = asyncio.create_task(all_synced(scene.graph.informers))
            await settle(300)
            assert not waiting.done()
            await scene.swap.tidy()
            await asyncio.wait_for(waiting, 1.0)
            assert not deaf.synced.is_set()
            assert not idle.synced.is_set()
            # A list that nobody makes any more is not waited for either.
            await asyncio.wait_for(deaf.relist(), 1.0)

    @virtual_time
    async def test_a_standby_that_fills_no_caches_starts_none(self):
        scene = Scene(text("ours"))
        wide = interpret(scene.flags, Offer("x", self.WIDE))
        await scene.swap.to(wide, scene.swap.reads(wide))
        assert scene.graph.watched.others.values()
        assert NODES.plural not in scene.tasks
        assert not any(informer.synced.is_set() for informer in scene.graph.watched.others.values())


@virtual_time
async def test_a_profile_that_cannot_be_compiled_is_no_swap():
    scene = Scene(text("ours"))
    broken = scene.options.configuration.profiles[0]
    broken = replace(broken, points=dict(broken.points) | {"bind": ()})
    with pytest.raises(ProfileError, match="at least one bind plugin"):
        scene.swap.reads(replace(scene.options.configuration, profiles=(broken,)))


@virtual_time
async def test_who_started_with_the_last_good_one_says_so_in_an_event():
    refused = RefusedOffer(hash_of("nonsense"), "ns/own:config.yaml", 0.0, ("everything is wrong",))
    async with running("nonsense", refused=refused) as scene:
        assert scene.count("refused") == 1
        scene.tasks.start("reload", scene.reload.run())
        await settle(300)
        (note,) = scene.events()
        assert "everything is wrong" in note
        # It goes on from there: the bad text is not judged again, a good one is.
        await asyncio.sleep(3 * reloading.LOOK_SECONDS)
        assert scene.count("refused") == 1
        scene.put(text("theirs"))
        await asyncio.sleep(1)
        assert scene.graph.pump.core.scheduler_names == {"theirs"}


class TestStandby:
    """With leader election each replica tells of what it refuses, whoever leads."""

    @staticmethod
    def elected(good):
        return good.replace("leaderElect: false", "leaderElect: true")

    @virtual_time
    async def test_a_change_that_is_refused_is_told_in_an_event(self):
        async with running(self.elected(text("ours"))) as scene:
            assert not scene.graph.elector.may_write()
            scene.put(self.elected(text("ours", more="paralellism: 3\n")))
            await scene.look()
            (note,) = scene.events()
            assert 'did you mean "parallelism"?' in note

    @virtual_time
    async def test_what_was_refused_at_the_start_is_told_before_anybody_leads(self):
        refused = RefusedOffer(
            hash_of("nonsense"), "ns/own:config.yaml", 0.0, ("everything is wrong",)
        )
        good = self.elected(text("ours"))
        async with running("nonsense", refused=refused, good=good) as scene:
            assert not scene.graph.elector.may_write()
            scene.tasks.start("reload", scene.reload.run())
            await settle(300)
            (note,) = scene.events()
            assert "everything is wrong" in note


@virtual_time
async def test_the_configuration_in_force_is_kept_in_its_config_map():
    saved = "/api/v1/namespaces/ns/configmaps/saved"
    flags = ConfigurationFlags(
        config_map=ConfigMapName("own", "ns"), last_good=ConfigMapName("saved", "ns")
    )
    async with running(text("ours"), flags=flags) as scene:
        scene.tasks.start("reload", scene.reload.run())
        await settle(300)
        # It has to be there; until then it is tried.
        assert scene.value("last_good_saved") == 0
        scene.api.create("/api/v1/configmaps", {"metadata": {"namespace": "ns", "name": "saved"}})
        await asyncio.sleep(11)
        assert scene.api.object(saved)["data"] == {"config.yaml": text("ours")}
        assert scene.value("last_good_saved") == 1
        scene.put("nonsense")
        await asyncio.sleep(3)
        assert scene.api.object(saved)["data"] == {"config.yaml": text("ours")}
        scene.put(text("theirs"))
        await asyncio.sleep(3)
        assert scene.api.object(saved)["data"] == {"config.yaml": text("theirs")}
