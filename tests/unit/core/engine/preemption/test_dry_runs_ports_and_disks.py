"""Host ports and disks: who of those that might leave is in the way, told as judging would."""

import itertools
import random

import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from tests.builders import make_node, make_pod
from tests.unit.core.engine.cores import FullHarness
from tests.unit.core.engine.preemption.test_dry_runs_affinity import found_for
from tests.unit.core.engine.preemption.test_reprieve import by_judging, judgements, small
from tests.unit.core.engine.preemption.told_at_once import told_and_judged

DRIVER = "disks.example.com"


def port(pod, number: int, *, ip: str = "", protocol: str = "TCP"):
    ports = pod.raw["spec"]["containers"][0].setdefault("ports", [])
    ports.append({"hostPort": number, "hostIP": ip, "protocol": protocol})
    return pod


def disk(pod, name: str, *, read_only: bool = False):
    volumes = pod.raw["spec"].setdefault("volumes", [])
    source = {"pdName": name, "readOnly": read_only}
    volumes.append({"name": f"v{len(volumes)}", "gcePersistentDisk": source})
    return pod


def claim(pod, name: str):
    volumes = pod.raw["spec"].setdefault("volumes", [])
    volumes.append({"name": f"v{len(volumes)}", "persistentVolumeClaim": {"claimName": name}})
    return pod


def bench(pods, *, limit: int | None = None, slots: int = 40, cpu: str = "30") -> FullHarness:
    """Return one node with pods that started one after the other, and claims that are bound."""
    made = FullHarness()
    made.node(make_node("n0").label(host="n0").offers(cpu=cpu, pods=str(slots)).obj())
    for name in ("a", "b", "c", "own"):
        modes = ["ReadWriteOncePod" if name == "own" else "ReadWriteOnce"]
        made.object(
            Kind.PERSISTENT_VOLUME,
            f"pv-{name}",
            spec={
                "accessModes": modes,
                "capacity": {"storage": "1Gi"},
                "csi": {"driver": DRIVER, "volumeHandle": f"h-{name}"},
                "claimRef": {"namespace": "default", "name": name},
            },
            status={"phase": "Bound"},
        )
        made.object(
            Kind.PERSISTENT_VOLUME_CLAIM,
            name,
            namespace="default",
            spec={"accessModes": modes, "volumeName": f"pv-{name}"},
            metadata={"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            status={"phase": "Bound"},
        )
    if limit is not None:
        driver = {"name": DRIVER, "nodeID": "n0", "allocatable": {"count": limit}}
        made.object(Kind.CSI_NODE, "n0", spec={"drivers": [driver]})
    for number, pod in enumerate(pods):
        pod.on("n0").raw["status"]["startTime"] = f"2026-01-01T00:00:{number:02}Z"
        made.pod(pod.obj())
    return made


def drawn(chance: random.Random, number: int):
    """Return a pod that has some ports and volumes, or none."""
    pod = small(number, chance.choice(["1", "500m", "3"]))
    for _ in range(chance.choice([0, 0, 1, 1, 3])):
        ip = chance.choice(["", "", "10.0.0.1", "10.0.0.2"])
        port(pod, chance.choice([80, 81, 82]), ip=ip, protocol=chance.choice(["TCP", "UDP"]))
    for _ in range(chance.choice([0, 0, 1, 2])):
        if chance.random() < 0.5:
            disk(pod, chance.choice("xyz"), read_only=chance.random() < 0.5)
        else:
            claim(pod, chance.choice(["a", "b", "c", "own"]))
    if chance.random() < 0.2:
        pod.label(app="kept")
    return pod


def story(seed: int):
    """Return a cluster and a pod that preempts, the same for the same seed."""
    chance = random.Random(seed)
    pods = [drawn(chance, number) for number in range(chance.randrange(1, 9))]
    new = drawn(chance, 99).uid("new")
    new.raw["metadata"]["name"] = "new"
    new.request(cpu=chance.choice(["1", "5", "9"]))
    limit = chance.choice([None, 1, 2, 30])
    made = bench(pods, limit=limit, slots=chance.choice([3, 8, 20]), cpu=chance.choice(["9", "12"]))
    if chance.random() < 0.3:
        made.budget("b", 0, app="kept")
    if chance.random() < 0.3:
        vip = drawn(chance, 50).priority(20)
        vip.raw["status"]["nominatedNodeName"] = "n0"
        vip.raw["spec"]["schedulingGates"] = [{"name": "wait"}]
        made.pod(vip.obj())
    return made, new


@pytest.mark.parametrize("hundred", range(4))
def test_the_victims_are_those_that_judging_finds(hundred, monkeypatch):
    seeds = range(hundred * 100, hundred * 100 + 100)
    at_once, judged, told = told_and_judged(monkeypatch, story, seeds)
    assert at_once == judged
    assert sum(map(bool, at_once)) > 20
    # It was said, and pods were in the way.
    assert sum(any(quota.places for quota in each or ()) for each in told) > 5


def test_only_they_leave_who_are_in_the_way(monkeypatch):
    pods = [port(small(0), 80), port(small(1), 81), small(2), port(small(3), 80, ip="10.0.0.1")]
    new = port(make_pod("new").request(cpu="1m"), 80)
    assert found_for(monkeypatch, bench(pods), new) == [(["p0", "p3"], 0)]
    pods = [disk(small(0), "x"), disk(small(1), "y"), small(2)]
    new = disk(make_pod("new").request(cpu="1m"), "x")
    assert found_for(monkeypatch, bench(pods), new) == [(["p0"], 0)]


def _with_port(number: int):
    return port(small(number, "1m"), 80 if number == 0 else 1000 + number)


def _with_disk(number: int):
    return disk(small(number, "1m"), "x" if number == 0 else f"own-{number}")


@pytest.mark.parametrize(
    ("crowd", "new"),
    [(_with_port, lambda pod: port(pod, 80)), (_with_disk, lambda pod: disk(pod, "x"))],
    ids=["ports", "disks"],
)
def test_a_crowd_is_judged_no_more_often_than_a_few(crowd, new, monkeypatch):
    counts = []
    for many in (4, 40):
        made = bench([crowd(number) for number in range(many)], slots=100)
        counts.append(judgements(monkeypatch, made, new(make_pod("new").request(cpu="1m"))))
    assert counts[1] == counts[0]


def test_pods_that_only_use_a_claim_by_the_same_name_may_come_back_until_it_is_too_much(
    monkeypatch,
):
    """As kube-scheduler counts: who uses the name counts, one claim in use counts once."""
    for many in range(1, 4):
        found = []
        for judging in (False, True):
            pods = [claim(small(number), "own") for number in range(many)]
            new = claim(make_pod("new").request(cpu="1m"), "own")
            with monkeypatch.context() as patch:
                if judging:
                    by_judging(patch)
                found.append(found_for(monkeypatch, bench(pods), new))
        assert found[0] == found[1]
        assert len(list(itertools.chain(*found))) > 0


def test_nodes_that_are_promised_are_judged_together_for_a_pod_with_disks(monkeypatch):
    trials = 0
    trial = Runtime.trial

    def counted(*args, **kwargs):
        nonlocal trials
        trials += 1
        return trial(*args, **kwargs)

    monkeypatch.setattr(Runtime, "trial", counted)
    made = FullHarness()
    for number in range(20):
        made.node(make_node(f"n{number}").offers(cpu="4", pods="10").obj())
        vip = make_pod(f"vip{number}").request(cpu="1").priority(20)
        vip.raw["status"]["nominatedNodeName"] = f"n{number}"
        vip.raw["spec"]["schedulingGates"] = [{"name": "wait"}]
        made.pod(vip.obj())
    made.pod(port(disk(make_pod("new").request(cpu="1"), "x"), 80).obj())
    assert [bind.name for bind in made.binds()] == ["new"]
    assert trials == 0
