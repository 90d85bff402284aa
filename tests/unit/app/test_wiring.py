"""Every setting reaches the part that acts on it."""

import asyncio
from dataclasses import replace

import msgspec
import pytest

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config.types import ClientConnection, LeaderElection
from k8s_scheduler.api.kinds import BUILT_IN, Kind, custom_kind
from k8s_scheduler.app.options import EvaluationMode, RunOptions
from k8s_scheduler.app.serving import endpoints_of
from k8s_scheduler.app.wiring import setup_of, wire
from k8s_scheduler.console.health import health_page
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.messages.incoming import ObjectChanged
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.kube.http.throttle import unlimited
from k8s_scheduler.kube.resources import resource_of
from k8s_scheduler.kube.watch.set_back import SetBack, Source
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_pod
from tests.fakes.api import FakeApi
from tests.fakes.clock import settle, virtual_time


def options(**settings) -> RunOptions:
    configuration = default_configuration(known_plugins())
    changed = msgspec.structs.replace(configuration.settings, **settings)
    return RunOptions(configuration=replace(configuration, settings=changed))


def wanting(monkeypatch, *kinds: Kind) -> None:
    """Let the enabled plugins read these kinds."""
    monkeypatch.setattr(Scheduler, "kinds", kinds)


NO_ELECTION = LeaderElection(leader_elect=False)


async def test_without_election_writes_are_always_allowed():
    graph = wire(options(leader_election=NO_ELECTION), FakeApi(), Metrics())
    assert graph.elector is None
    assert graph.dispatcher._caller.may_write()
    assert graph.dispatcher._conditions._caller.may_write()


async def test_with_election_only_the_leader_may_write():
    graph = wire(options(), FakeApi(), Metrics())
    asked = (graph.dispatcher._caller.may_write, graph.dispatcher._conditions._caller.may_write)
    assert not any(may_write() for may_write in asked)
    await graph.elector.acquire()
    assert all(may_write() for may_write in asked)


async def test_no_binding_is_sent_while_what_is_known_is_of_a_storage_that_is_no_more():
    graph = wire(options(leader_election=NO_ELECTION), FakeApi(), Metrics())
    graph.restored.notice(SetBack("leases", Source.LEASE, known="907", seen="803"))
    assert not graph.dispatcher._caller.may_write()
    await graph.pump.trust({})
    assert graph.dispatcher._caller.may_write()


@pytest.mark.parametrize(("lease", "renew"), [(15, 10), (4, 3), (30, 5)])
async def test_a_write_ends_before_anybody_else_can_lead(lease, renew):
    election = LeaderElection(
        lease_duration_seconds=lease, renew_deadline_seconds=renew, retry_period_seconds=0.5
    )
    graph = wire(options(leader_election=election), FakeApi(), Metrics())
    assert graph.dispatcher._caller.timeout_seconds < lease - renew
    assert graph.elector._config.lease_duration_seconds == lease
    assert graph.elector._config.renew_deadline_seconds == renew


async def test_the_lease_is_the_one_that_is_configured():
    election = LeaderElection(resource_name="mine", resource_namespace="here")
    graph = wire(options(leader_election=election), FakeApi(), Metrics())
    assert (graph.elector._config.name, graph.elector._config.namespace) == ("mine", "here")


async def test_the_rate_limit_holds_for_every_write_about_pods():
    limited = options(client_connection=ClientConnection(qps=5.0, burst=1))
    graph = wire(limited, FakeApi(), Metrics())
    admits = {
        graph.dispatcher._caller.admit,
        graph.dispatcher._conditions._caller.admit,
        graph.recorder._writer._caller.admit,
    }
    assert len(admits) == 1
    assert unlimited not in admits
    free = wire(options(leader_election=NO_ELECTION), FakeApi(), Metrics())
    assert free.dispatcher._caller.admit is unlimited


def test_waiting_times_reach_the_queue():
    changed = replace(
        options(pod_initial_backoff_seconds=3, pod_max_backoff_seconds=7),
        pod_max_in_unschedulable_pods_seconds=42.0,
    )
    queue = setup_of(changed).queue
    assert (queue.backoff.initial_seconds, queue.backoff.maximum_seconds) == (3, 7)
    assert queue.parked_limit_seconds == 42


def test_how_decisions_are_worked_out_reaches_the_core():
    assert (setup_of(options()).keeps_evaluations, setup_of(options()).verified_share) == (True, 0)
    plain = replace(options(), evaluation=EvaluationMode.PLAIN, verified_share=0.5)
    assert setup_of(plain).keeps_evaluations is False
    assert setup_of(plain).verified_share == 0.5


async def test_ready_means_everything_is_synced(monkeypatch):
    wanting(monkeypatch, Kind.CSI_NODE)
    graph = wire(options(), FakeApi(), Metrics())
    ready = endpoints_of(graph, Metrics()).readyz

    def page():
        return health_page("readyz", ready, verbose=False, role=None)

    problem = "[-]sched-handler-sync failed: handlers are not fully synchronized: "
    assert page().status == 503
    assert page().text.startswith(f"{problem}nodes, csinodes.storage.k8s.io, pods\n")
    graph.nodes.synced.set()
    graph.pods.synced.set()
    assert page().status == 503
    assert page().text.startswith(f"{problem}csinodes.storage.k8s.io\n")
    (csi_nodes,) = graph.watched.others.values()
    csi_nodes.synced.set()
    assert page().status == 200


async def test_pods_are_shown_once_all_are_known():
    graph = wire(options(leader_election=NO_ELECTION), FakeApi(), Metrics())
    endpoints = endpoints_of(graph, Metrics())
    pods = [make_pod("bound").on("n1").obj(), make_pod("others").scheduler("another").obj()]
    for pod in pods:
        graph.pods._store.put(pod)
    assert list(endpoints.pods()) == []
    graph.pods.synced.set()
    shown = endpoints.pods()
    assert list(shown) == pods
    graph.pods._store.remove("default/bound")
    assert list(shown) == pods, "a page is of one moment"


async def test_pods_are_shown_by_the_leader_alone(monkeypatch):
    graph = wire(options(), FakeApi(), Metrics())
    endpoints = endpoints_of(graph, Metrics())
    graph.pods._store.put(make_pod("p").obj())
    graph.pods.synced.set()
    assert list(endpoints.pods()) == []
    monkeypatch.setattr(graph.elector._claim, "leading", True)
    assert len(endpoints.pods()) == 1


async def test_only_kinds_that_plugins_read_are_watched(monkeypatch):
    wanting(monkeypatch)
    assert wire(options(), FakeApi(), Metrics()).watched.others == {}
    wanting(monkeypatch, Kind.SERVICE, Kind.CSI_NODE)
    others = wire(options(), FakeApi(), Metrics()).watched.others.values()
    assert [informer.resource for informer in others] == [
        resource_of(Kind.SERVICE),
        resource_of(Kind.CSI_NODE),
    ]


@virtual_time
async def test_objects_of_every_kind_reach_the_core():
    told = []

    class Core(Scheduler):
        kinds = BUILT_IN

        def handle(self, message):
            told.append(message)
            return []

    api = FakeApi()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("k8s_scheduler.app.wiring.Scheduler", Core)
        graph = wire(options(), api, Metrics())
    tasks = [asyncio.create_task(informer.run()) for informer in graph.watched.others.values()]
    for informer in graph.watched.others.values():
        await informer.synced.wait()
    for resource in map(resource_of, BUILT_IN):
        namespace = {"namespace": "a"} if resource.namespaced else {}
        metadata = {"name": "x", **namespace}
        path = resource.object_path("x", namespace="a")
        api.create(resource.list_path, {"metadata": metadata})
        api.update(path, {"metadata": metadata | {"labels": {"l": "v"}}})
        api.delete(path)
    await settle()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for kind in BUILT_IN:
        resource = resource_of(kind)
        added, changed, gone = (m for m in told if m.kind is kind)
        for message in (added, changed, gone):
            assert isinstance(message, ObjectChanged)
            assert message.namespace == ("a" if resource.namespaced else "")
            assert message.name == "x"
        assert isinstance(added.object, kind.type)
        assert added.read().metadata.labels is None
        assert changed.read().metadata.labels == {"l": "v"}
        assert gone.object is None
    assert len(told) == 3 * len(BUILT_IN)


async def test_the_role_is_told_only_with_election():
    assert endpoints_of(wire(options(), FakeApi(), Metrics()), Metrics()).role() == "standby"
    alone = wire(options(leader_election=NO_ELECTION), FakeApi(), Metrics())
    assert endpoints_of(alone, Metrics()).role() is None


async def test_a_recording_is_made_only_when_asked_for(tmp_path):
    assert wire(options(), FakeApi(), Metrics()).recording is None
    asked = replace(options(), record_file=tmp_path / "tape", record_max_bytes=12345)
    graph = wire(asked, FakeApi(), Metrics())
    assert graph.recording._max_bytes == 12345
    await asyncio.sleep(0)
    graph.recording.close()


def watches(metrics):
    (family,) = metrics.kube.reflector_lists.collect()
    return {sample.labels["resource"] for sample in family.samples}


@virtual_time
async def test_of_a_custom_resource_only_what_is_declared_reaches_the_core():
    """A status that changes all the time costs no message; names in metrics are full names."""
    told = []
    kind = custom_kind("Group", "groups.x.io", version="v1beta1", paths=["spec.size"])

    class Core(Scheduler):
        kinds = (kind,)

        def handle(self, message):
            told.append(message)
            return []

    api, metrics = FakeApi(), Metrics()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("k8s_scheduler.app.wiring.Scheduler", Core)
        graph = wire(options(), api, metrics)
    (informer,) = graph.watched.others.values()
    assert informer.resource.list_path == "/apis/x.io/v1beta1/groups"
    assert informer.resource.label == "groups.x.io"
    assert graph.watched.others == {kind: informer}
    task = asyncio.create_task(informer.run())
    await informer.synced.wait()
    metadata = {"name": "x", "namespace": "a"}
    path = informer.resource.object_path("x", namespace="a")
    api.create(informer.resource.list_path, {"metadata": metadata, "spec": {"size": 1, "n": 1}})
    for count in range(5):
        noisy = metadata | {"annotations": {f"a{count}": "x"}, "managedFields": [count]}
        status = {"running": count}
        api.update(path, {"metadata": noisy, "spec": {"size": 1, "n": count}, "status": status})
    await settle()
    assert [message.read().content for message in told] == [{"spec.size": 1}]
    api.update(path, {"metadata": metadata, "spec": {"size": 2}})
    api.delete(path)
    await settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [m.read() and m.read().content for m in told[1:]] == [{"spec.size": 2}, None]
    assert watches(metrics) == {"groups.x.io", "nodes", "pods"}
