"""A world comes back as it was, and each contestant places all that waits in it."""

from collections.abc import Callable, Iterator

import pytest

from testbed.bench.account import Account, LogReader
from testbed.bench.contestants import Contestant, NullBinder, Ours, Recorded, Upstream
from testbed.bench.scenarios import BENCH_SCHEDULER
from testbed.bench.world import World
from testbed.client import Object
from testbed.waiting import eventually
from testbed.workload import make_node, make_nodes, make_pod, make_pods

NODES, PODS = 20, 40
CONTESTANTS: dict[str, Callable[[World], Contestant]] = {
    "k8s-scheduler": lambda world: Ours(world, flags=("--verify-cache=1",)),
    "recorded": Recorded,
    "kube-scheduler": Upstream,
    "null-binder": NullBinder,
}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World() as world:
        world.fill([*make_nodes(NODES), _priority_class(), _volume()])
        world.fill([make_pod("in-place", node_name="node-00")])
        world.fill(make_pods(PODS, scheduler_name=BENCH_SCHEDULER))
        # Nobody has room for it, and the null binder must know that too.
        world.fill([make_pod("background-0", cpu="99", scheduler_name=BENCH_SCHEDULER)])
        world.snapshot()
        yield world


def _priority_class() -> Object:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": "some"}, "value": 7}


def _volume() -> Object:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/nowhere"},
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "volume"},
        "spec": spec,
        "status": {"phase": "Available"},
    }


def test_pods_are_as_admission_makes_them_in_a_real_cluster(world: World):
    world.restore()
    pod = world.bed.client.get("/api/v1/namespaces/default/pods/web-0")
    (volume,) = pod["spec"]["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert pod["spec"]["serviceAccountName"] == "default"
    tolerated = {toleration["key"] for toleration in pod["spec"]["tolerations"]}
    assert tolerated == {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}


def _placed(world: World) -> dict[str, str]:
    pods = world.bed.client.list("/api/v1/pods")
    return {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in pods}


def _events(world: World) -> list[Object]:
    events = world.bed.client.list("/apis/events.k8s.io/v1/events")
    return [event for event in events if event["reason"] == "Scheduled"]


@pytest.mark.parametrize("name", CONTESTANTS)
def test_each_contestant_places_all_that_waits_in_a_restored_world(world: World, name: str):
    world.restore()
    before = _placed(world)
    assert (len(before), [n for n, node in before.items() if node]) == (PODS + 2, ["in-place"])
    assert _events(world) == []
    reader = LogReader(world.audit_log)
    assert reader.catch_up() == Account()
    contestant = CONTESTANTS[name](world)
    assert contestant.name == name
    contestant.start()
    try:
        contestant.wait_ready()
        assert contestant.is_ready()
        pid = contestant.pid
        eventually(lambda: len(reader.catch_up().told) == PODS, 30, "every Scheduled event written")
    finally:
        contestant.stop()
    assert pid is not None
    assert contestant.pid is None
    contestant.stop()  # a second time does nothing

    account = reader.catch_up()
    measured = {pod["metadata"]["name"] for pod in make_pods(PODS)}
    assert set(account.bound) == measured
    assert account.refused == 0
    placed = _placed(world)
    assert {n for n, node in placed.items() if node} == measured | {"in-place"}
    assert placed["background-0"] == ""
    events = _events(world)
    assert {
        (e["regarding"]["name"], e["note"], e["action"], e["type"], e["reportingController"])
        for e in events
    } == {
        (
            pod,
            f"Successfully assigned default/{pod} to {placed[pod]}",
            "Binding",
            "Normal",
            BENCH_SCHEDULER,
        )
        for pod in measured
    }
    assert len(events) == PODS
    if isinstance(contestant, Recorded):
        assert sorted(contestant.decided()) == sorted(measured)
    if isinstance(contestant, NullBinder):
        assert contestant.bound() == PODS
        counts = [list(placed.values()).count(n["metadata"]["name"]) for n in make_nodes(NODES)]
        assert sorted(counts) == [2] * (NODES - 1) + [3]


def test_each_state_comes_back_with_all_that_was_filled_in_and_nothing_else(world: World):
    world.restore()
    world.fill([make_node("later")])
    world.snapshot("larger")
    world.restore()
    client = world.bed.client
    assert len(client.list("/api/v1/nodes")) == NODES
    assert client.get("/api/v1/persistentvolumes/volume")["status"]["phase"] == "Available"
    priority = client.get("/apis/scheduling.k8s.io/v1/priorityclasses/some")
    assert priority["value"] == 7
    world.restore("larger")
    assert len(client.list("/api/v1/nodes")) == NODES + 1
