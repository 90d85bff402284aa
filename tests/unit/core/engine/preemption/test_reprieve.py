"""Who may stay is found by sums where filters see nothing else, and by judging elsewhere."""

import pytest

from k8s_scheduler.core.engine.preemption import dry_runs
from k8s_scheduler.core.engine.preemption.reprieve import narrow, victims
from k8s_scheduler.core.framework.evaluation.judging_rows import Together
from k8s_scheduler.core.messages.outgoing import Evict
from tests.builders import make_node, make_pod
from tests.unit.core.engine.cores import FullHarness
from tests.unit.core.harness import only


def crowded(*pods, slots: int = 10, cpu: str = "10") -> FullHarness:
    """Return a cluster of one node with pods that started one after the other."""
    bench = FullHarness()
    bench.node(make_node("n0").offers(cpu=cpu, pods=str(slots)).obj())
    for number, pod in enumerate(pods):
        pod.on("n0").raw["status"]["startTime"] = (
            f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"
        )
        bench.pod(pod.obj())
    return bench


def small(number: int, cpu: str = "1"):
    return make_pod(f"p{number}").request(cpu=cpu)


def evicted_for(bench: FullHarness, pod) -> list[str]:
    bench.pod(pod.priority(10).obj())
    return sorted(e.victim.name for e in only(Evict, bench.schedule()))


def by_judging(monkeypatch) -> None:
    monkeypatch.setattr(dry_runs, "_found_by_sums", lambda _candidate: False)


SIZES = {
    "alike": ["1"] * 10,
    "all different": [f"{500 + 100 * n}m" for n in range(10)],
    "a large one first": ["6", "1", "1", "1", "1"],
    "a large one last": ["1", "1", "1", "1", "6"],
    "that ask for nothing": ["0"] * 10,
    "large and small in turn": ["4", "100m", "4", "100m", "1", "100m"],
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("slots", [5, 10])
@pytest.mark.parametrize("asked", ["100m", "3", "9"])
def test_the_victims_are_those_that_judging_finds(sizes, slots, asked, monkeypatch):
    pods = [small(number, cpu) for number, cpu in enumerate(sizes)]
    found = evicted_for(crowded(*pods, slots=slots), make_pod("new").request(cpu=asked))
    by_judging(monkeypatch)
    pods = [small(number, cpu) for number, cpu in enumerate(sizes)]
    assert evicted_for(crowded(*pods, slots=slots), make_pod("new").request(cpu=asked)) == found


def judgements(monkeypatch, bench: FullHarness, pod) -> int:
    """Return how often rows are judged for a pod that evicts others."""
    count = 0
    judge = Together.judge

    def counted(*args):
        nonlocal count
        count += 1
        return judge(*args)

    monkeypatch.setattr(Together, "judge", counted)
    assert evicted_for(bench, pod)
    return count


@pytest.mark.parametrize("alike", [True, False])
def test_a_crowd_is_judged_no_more_often_than_a_few(alike, monkeypatch):
    counts = []
    for crowd in (5, 200):
        pods = [small(n, "1m" if alike else f"{n + 1}m") for n in range(crowd)]
        bench = crowded(*pods, slots=5, cpu="100")
        counts.append(judgements(monkeypatch, bench, make_pod("new").request(cpu="1m")))
    assert counts[1] == counts[0]


def with_port(pod, number: int):
    pod.raw["spec"]["containers"][0]["ports"] = [{"hostPort": number}]
    return pod


def test_ports_are_no_sums():
    pods = [with_port(small(0), 80), small(1)]
    assert evicted_for(crowded(*pods), with_port(make_pod("new").request(cpu="1m"), 80)) == ["p0"]
    pods = [with_port(small(0), 80), small(1)]
    assert evicted_for(crowded(*pods, slots=2), make_pod("new").request(cpu="1m")) == ["p1"]


def test_room_that_is_promised_is_not_given_away():
    pods = [small(number, "4") for number in range(2)]
    bench = crowded(*pods)
    promised = make_pod("vip").request(cpu="2").priority(20)
    promised.raw["status"]["nominatedNodeName"] = "n0"
    promised.raw["spec"]["schedulingGates"] = [{"name": "wait"}]
    bench.pod(promised.obj())
    assert evicted_for(bench, make_pod("new").request(cpu="3")) == ["p1"]


class _Takes:
    """What matters of a placed pod."""

    def __init__(self, **amounts: int) -> None:
        self.requests = _Requests(tuple(amounts.items()))


class _Requests:
    def __init__(self, amounts) -> None:
        self.amounts = amounts


def test_amounts_that_have_no_sum_are_left_to_judging():
    assert victims([_Takes(cpu=1), _Takes(cpu=2)], {"cpu": 2}) == [1]
    assert victims([_Takes(cpu=-1)], {"cpu": 2}) is None
    assert victims([_Takes(cpu=2**62)], {"cpu": 2}) is None
    assert victims([_Takes(memory=2**62)], {"cpu": 2}) == []


def test_the_narrower_room_counts():
    room = {"cpu": 2, "pods": 1}
    narrow(room, {"cpu": 3, "memory": 1, "pods": 0})
    assert room == {"cpu": 2, "memory": 1, "pods": 0}
