"""Pods on their way through random histories, with an API server that lags, fails and forgets.

Reserve, permits, writes before binding, preemption and late binding all happen at once. After each
message every pod is in exactly one place and every column is the sum of its pods; nobody waits for
an answer that nobody owes; no victim is evicted twice, and what a pod said of its node is taken
back when it gets none. On the way a second core is born from a checkpoint; it must not be told
apart from then on. In the end, with everything answered and seen, the core believes what a new one
believes that is told of the cluster as it is.
"""

from collections import Counter
from typing import Any

import pytest

from k8s_scheduler.core.engine.preemption import post_filter
from k8s_scheduler.core.queue import waking
from tests.builders import PodBuilder, make_node, make_pod
from tests.inside import inside
from tests.property.saga_history import NODES, History
from tests.property.saga_world import HOST


class Bustle(History):
    """A cluster in which everything happens, and some of it is never shown."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.server.losing = 0.2

    def weights(self) -> dict[Any, float]:
        return WEIGHTS


WEIGHTS: dict[Any, float] = {
    Bustle.create_pods: 7,
    Bustle.change_pod: 3,
    Bustle.end_terminating: 1,
    Bustle.put_node: 0.7,
    Bustle.drop_node: 0.3,
    Bustle.change_volumes: 1.5,
    Bustle.change_claims: 2,
    Bustle.touch_claim: 1,
    Bustle.change_mark: 1,
    Bustle.deliver: 9,
    Bustle.execute: 6,
    Bustle.control: 3,
    Bustle.schedule: 6,
    Bustle.settle: 1,
    Bustle.tick: 3,
    Bustle.branch_off_a_twin: 1,
}


class Crowd(History):
    """A cluster that is full: whoever comes has to make room, and the server takes its time."""

    def put_node(self, name: str = "") -> None:
        name = name or self.rng.choice(NODES[:2])
        node = make_node(name).label(**{HOST: name}).offers(cpu="3", memory="8Gi", pods="9")
        self.server.put_node(node.raw)

    def random_pod(self, name: str) -> PodBuilder:
        pod = make_pod(name).uid(name).priority(self.rng.choice([0, 0, 0, 5, 10, 20]))
        pod.request(cpu=self.rng.choice("1123")).label(app="x")
        if self.maybe(0.3):
            pod.label(permit="wait", after=self.rng.choice("xz"))
        return pod

    def weights(self) -> dict[Any, float]:
        return WEIGHTS_OF_A_CROWD

    def drop_a_preemptor(self) -> None:
        uids = [entry.uid for entry in inside(self.core).state.preemptions.entries()]
        if uids:
            self.server.drop_pod(self.rng.choice(uids))


WEIGHTS_OF_A_CROWD: dict[Any, float] = {
    Crowd.create_pods: 9,
    Crowd.drop_a_preemptor: 3,
    Crowd.end_terminating: 2,
    Crowd.put_node: 0.5,
    Crowd.deliver: 7,
    Crowd.execute: 5,
    Crowd.schedule: 8,
    Crowd.tick: 2,
    Crowd.branch_off_a_twin: 1,
}


def run_all(seeds: range, kind: type[History]) -> Counter[str]:
    """Run histories; return what they came across."""
    met: Counter[str] = Counter()
    for seed in seeds:
        history = kind(seed)
        try:
            history.run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        met += history.met
    return met


@pytest.mark.parametrize("first", range(0, 300, 30))
def test_random_histories(first, monkeypatch):
    # Small steps, so that much happens between them.
    monkeypatch.setattr(waking, "WORK_PER_STEP", 100 * (1 + first // 30 % 3))
    monkeypatch.setattr(waking, "PODS_PER_STEP", 1 + first // 30 % 4)
    met = run_all(range(first, first + 30), Bustle)
    assert {
        "a node is named",
        "a named node is taken back",
        "a pod was read because nobody saw it bound: there",
        "a pod waits for objects",
    } <= met.keys()


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_random_crowds(first, monkeypatch):
    # Of two, one in which searches for room take many messages.
    if first % 60:
        monkeypatch.setattr(post_filter, "SEARCH_WORK", 1)
        monkeypatch.setattr(post_filter, "WAKING_WORK", 1)
    met = run_all(range(first, first + 30), Crowd)
    assert met.keys() >= {
        "a node is named",
        "a named node is taken back",
        "a victim is sent back",
        "the last victim is sent back",
        "a victim is not seen to leave yet",
        "two pods need one victim",
        "a preemption outlives its pod",
        "seen before it is answered",
    }
