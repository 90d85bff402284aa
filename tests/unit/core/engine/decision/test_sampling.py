"""Sampling: how many nodes are looked at, in which order, and where the next search starts."""

import dataclasses
import random

import numpy as np
import pytest

from k8s_scheduler.core.builtins import BUILT_INS
from k8s_scheduler.core.engine.decision.cycle import Cycle
from k8s_scheduler.core.engine.decision.sampling import MIN_NODES, Sampling, nodes_to_find
from k8s_scheduler.core.framework.evaluation.runtime import Filtered, PreFiltered, Runtime
from k8s_scheduler.core.framework.profile import compile_profile
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.cache import Cache
from tests.builders import make_node, make_pod
from tests.unit.core.engine.cores import FULL

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("nodes", "percentage", "expected"),
    [
        (1, 1, 1),
        (99, 10, 99),
        (100, 10, 100),
        (1000, 5, 100),
        (1000, 30, 300),
        (5000, 7, 350),
        (5001, 7, 350),
        (6000, 100, 6000),
    ],
)
def test_how_many_are_enough(nodes, percentage, expected):
    assert nodes_to_find(nodes, percentage) == expected


def cluster(labels):
    """Return a cache with a node for each of the labels."""
    cache = Cache()
    for number, found in enumerate(labels):
        node = make_node(f"n{number}")
        node.raw["metadata"]["labels"] = found
        cache.put_node(node.obj())
    return cache


def filtered(rows, feasible, inside=None):
    """Return what filters would have said: code 1 is a rejection, code 2 is outside a node set."""
    codes = np.where(np.isin(rows, feasible), 0, 1)
    if inside is None:
        return Filtered(codes, rows[codes == 0], PreFiltered())
    codes[~np.isin(rows, inside)] = 2
    names = frozenset(f"n{row}" for row in inside)
    return Filtered(codes, rows[codes == 0], PreFiltered(names=names), outside_code=2)


def order_of(labels):
    """Return the nodes in the order in which they are looked at, zone by zone."""
    cache = cluster(labels)
    return Sampling(cache.nodes)._in_turn(cache.nodes.present_rows()).tolist()


def test_zones_take_turns():
    zones = ["a", "a", "a", "b", "c", "c"]
    assert order_of([{ZONE: zone} for zone in zones]) == [0, 3, 4, 1, 5, 2]


def test_nodes_without_a_zone_are_a_zone():
    assert order_of([{ZONE: "a"}, {}, {ZONE: "a"}, {}]) == [0, 1, 2, 3]


def test_a_zone_is_in_a_region():
    labels = [
        {REGION: "r1", ZONE: "a"},
        {REGION: "r1", ZONE: "a"},
        {REGION: "r2", ZONE: "a"},
        {REGION: "r1"},
    ]
    assert order_of(labels) == [0, 2, 3, 1]


def test_the_old_labels_go_before_the_new_ones():
    labels = [{OLD_ZONE: "a", ZONE: "b"}, {ZONE: "a"}, {ZONE: "b"}, {OLD_ZONE: "b"}]
    assert order_of(labels) == [0, 2, 1, 3]
    assert order_of([{OLD_REGION: "a", REGION: "b"}, {REGION: "a"}, {REGION: "b"}]) == [0, 2, 1]


def test_an_empty_old_label_goes_before_the_new_one_and_is_no_zone():
    assert order_of([{OLD_ZONE: "", ZONE: "a"}, {}, {ZONE: "a"}]) == [0, 2, 1]
    assert order_of([{REGION: "r", ZONE: ""}, {REGION: "r"}, {REGION: "s"}]) == [0, 2, 1]


def test_a_node_that_moves_to_another_zone_takes_its_turn_there():
    cache = cluster([{ZONE: "a"}, {ZONE: "a"}, {ZONE: "b"}])
    sampling = Sampling(cache.nodes)
    assert sampling._in_turn(cache.nodes.present_rows()).tolist() == [0, 2, 1]
    node = make_node("n1")
    node.raw["metadata"]["labels"] = {ZONE: "c"}
    cache.put_node(node.obj())
    # As a core that is restored from a checkpoint would see it.
    fresh = Sampling(cache.nodes)._in_turn(cache.nodes.present_rows()).tolist()
    assert fresh == [0, 1, 2]
    assert sampling._in_turn(cache.nodes.present_rows()).tolist() == fresh


def search(order, start, feasible, wanted):
    """Search node by node; return what is found and how many were looked at.

    As upstream, the search ends with the first node that is one too many. That node is not taken
    and does not count as looked at: the next search starts with it.
    """
    found: list[int] = []
    for looked_at, row in enumerate(order[start:] + order[:start]):
        if row in feasible:
            if len(found) == wanted:
                return sorted(found), looked_at
            found.append(row)
    return sorted(found), len(order)


def searches(seed):
    """Yield (sampling, rows, filtered, feasible, wanted, percentage) of random searches."""
    rng = random.Random(seed)
    count = rng.choice([5, 99, 100, 150, 300])
    cache = cluster([{}] * count)
    rows = cache.nodes.present_rows()
    sampling = Sampling(cache.nodes)
    for _ in range(20):
        percentage = rng.choice([1, 40, 60, 100])
        chance = rng.choice([0.1, 0.7, 1.0])
        feasible = [row for row in range(count) if rng.random() < chance] or [0]
        wanted = nodes_to_find(count, percentage)
        yield sampling, rows, feasible, wanted, percentage


@pytest.mark.parametrize("seed", range(20))
def test_a_search_finds_the_first_feasible_nodes_from_its_start_and_enough_of_them(seed):
    for sampling, rows, feasible, wanted, percentage in searches(seed):
        start = sampling.next_start
        found = sampling.cut(rows, filtered(rows, feasible), percentage).tolist()
        assert len(found) == min(wanted, len(feasible))
        assert found == search(rows.tolist(), start, feasible, wanted)[0]


@pytest.mark.parametrize("seed", range(20))
def test_the_next_search_starts_with_the_first_node_that_was_too_many(seed):
    for sampling, rows, feasible, wanted, percentage in searches(seed):
        start = sampling.next_start
        sampling.cut(rows, filtered(rows, feasible), percentage)
        looked_at = search(rows.tolist(), start, feasible, wanted)[1]
        assert sampling.next_start == (start + looked_at) % len(rows)


def test_nodes_outside_a_node_set_are_not_looked_at():
    cache = cluster([{}] * 300)
    rows = cache.nodes.present_rows()
    sampling = Sampling(cache.nodes)
    sampling.next_start = 50
    inside = list(range(0, 300, 2))
    found = sampling.cut(rows, filtered(rows, inside, inside), 1).tolist()
    # Of the 150 nodes 100 are enough; the place to start is one among them: 100, 102 ... 298.
    assert found == list(range(100, 300, 2))
    assert sampling.next_start == 150


def test_a_small_node_set_is_looked_at_as_a_whole():
    cache = cluster([{}] * 300)
    rows = cache.nodes.present_rows()
    sampling = Sampling(cache.nodes)
    inside = [7, 8, 9]
    assert sampling.cut(rows, filtered(rows, [7, 9, 30], inside), 1).tolist() == [7, 9]
    assert sampling.next_start == 3


def test_everybody_gets_a_turn():
    cache = cluster([{}] * 250)
    rows = cache.nodes.present_rows()
    sampling = Sampling(cache.nodes)
    found = [sampling.cut(rows, filtered(rows, rows), 1).tolist() for _ in range(5)]
    assert [len(f) for f in found] == [MIN_NODES] * 5
    assert sorted(row for taken in found for row in taken) == sorted([*range(250), *range(250)])


# In a decision


def profile(percentage):
    (found,) = (p for p in FULL.profiles if p.scheduler_name == "default-scheduler")
    changed = dataclasses.replace(found, percentage_of_nodes_to_score=percentage)
    return compile_profile(changed, BUILT_INS)


def decisions(percentage, *, pods=3):
    """Return where pods go, with room at the end of the table only being far better."""
    cache = Cache()
    for number in range(200):
        cpu = "400" if number == 150 else "4"
        cache.put_node(make_node(f"n{number:03}").offers(cpu=cpu, memory="8Gi", pods="9").obj())
    verdicts = VerdictTable()
    cycle = Cycle(cache, Runtime(cache, verdicts), verdicts)
    compiled = profile(percentage)
    found = []
    for number in range(pods):
        queued = QueuedPod(make_pod(f"p{number}").request(cpu="2").obj(), timestamp=0.0)
        found.append(cycle.decide(compiled, queued).row)
    return found


def test_without_a_percentage_every_node_is_looked_at():
    assert decisions(0) == [150, 150, 150]


def test_a_percentage_of_the_configuration_is_heeded():
    first, second, third = decisions(1)
    # A hundred of the two hundred at a time.
    assert first < 100
    assert second == 150
    assert third < 100


def test_a_hundred_percent_are_all_nodes():
    assert decisions(100) == [150, 150, 150]
