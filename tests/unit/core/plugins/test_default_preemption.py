"""DefaultPreemption: how many nodes are tried, from where, which is picked, what is said."""

from collections import Counter

import pytest

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.preemption import DryRunError, Victims
from k8s_scheduler.core.framework.reasons import Reason, Verdict
from tests.builders import make_pod
from tests.unit.core.engine.cores import promised
from tests.unit.core.plugins.plugin_bench import made

SHORT = Verdict(
    "NodeResourcesFit", (Reason("NodeResourcesFit/cpu", "Insufficient cpu"),), resolvable=True
)
HOPELESS = Verdict("NodeName", (Reason("NodeName/Other", "another node"),), resolvable=False)


def victims(*priorities, violations=0, start=None):
    pods = []
    for number, priority in enumerate(priorities):
        pod = make_pod(f"v{number}").priority(priority)
        if start:
            pod.raw["status"]["startTime"] = start
        pods.append(pod.obj())
    return Victims(tuple(pods), violations)


# A node on which nobody is less important.
NOBODY = object()


class FakeUnplaced:
    """Nodes and what dry runs on them would find."""

    def __init__(self, outcomes, *, others=0, seed=0, verdicts=None, pods=None):
        self.outcomes = {NodeName(node): outcome for node, outcome in outcomes.items()}
        self.others = others
        self.number = seed
        self.verdicts = verdicts or {}
        self.pods = pods or {}
        self.tried = []

    def verdict_on(self, node):
        return self.verdicts.get(node)

    def pods_on(self, node):
        return self.pods.get(node, ())

    def resolvable_count(self):
        return len(self.outcomes)

    def nodes_with_lesser(self):
        return tuple(node for node, found in self.outcomes.items() if found is not NOBODY)

    def node_count(self):
        return len(self.outcomes) + self.others

    def seed(self):
        return self.number

    def dry_run(self, node):
        self.tried.append(node)
        outcome = self.outcomes[node]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def preempt(unplaced, pod=None, **args):
    pod = pod or make_pod("p").priority(10).obj()
    return made("DefaultPreemption", **args).post_filter(CycleState(), pod, unplaced)


# How many


@pytest.mark.parametrize(
    ("percentage", "absolute", "nodes", "tried"),
    [
        (10, 1, 40, 4),
        (10, 1, 49, 4),
        (10, 7, 40, 7),
        (0, 5, 40, 5),
        (10, 100, 40, 40),
        (100, 0, 40, 40),
        (1, 0, 150, 1),
    ],
)
def test_enough_candidates_are_wanted(percentage, absolute, nodes, tried):
    unplaced = FakeUnplaced({f"n{i}": victims(1) for i in range(nodes)})
    args = {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": absolute}
    preempt(unplaced, **args)
    assert len(unplaced.tried) == tried


def test_defaults_want_a_tenth_and_a_hundred():
    unplaced = FakeUnplaced({f"n{i:04}": victims(1) for i in range(1200)})
    preempt(unplaced)
    assert len(unplaced.tried) == 120
    unplaced = FakeUnplaced({f"n{i:04}": victims(1) for i in range(900)})
    preempt(unplaced)
    assert len(unplaced.tried) == 100


def test_the_search_goes_on_until_a_candidate_violates_no_budget():
    outcomes = {f"n{i}": victims(1, violations=1) for i in range(5)}
    unplaced = FakeUnplaced(outcomes | {"n5": victims(9), "n6": victims(1)})
    result = preempt(unplaced, minCandidateNodesPercentage=0, minCandidateNodesAbsolute=2)
    assert unplaced.tried == [f"n{i}" for i in range(6)]
    assert result.nominated == "n5"


def test_nodes_that_cannot_help_are_no_candidates():
    unplaced = FakeUnplaced({"n0": SHORT, "n1": NOBODY, "n2": victims(1), "n3": victims(1)})
    preempt(unplaced, minCandidateNodesPercentage=0, minCandidateNodesAbsolute=1)
    assert unplaced.tried == ["n0", "n2"]


# From where


@pytest.mark.parametrize("seed", [0, 1, 3, 4, 7, 4_294_967_295])
def test_the_search_starts_where_the_seed_says_and_goes_round(seed):
    nodes = ["n0", "n1", "n2", "n3"]
    unplaced = FakeUnplaced(dict.fromkeys(nodes, SHORT), seed=seed)
    preempt(unplaced)
    start = seed % 4
    assert unplaced.tried == nodes[start:] + nodes[:start]


def test_ties_are_shared_fairly_and_the_same_seed_picks_the_same_node():
    candidates = {NodeName(f"n{i}"): victims(1) for i in range(4)}
    pick = made("DefaultPreemption").pick
    picks = Counter(pick(candidates, seed) for seed in range(400))
    assert picks == {f"n{i}": 100 for i in range(4)}
    reordered = dict(reversed(candidates.items()))
    assert [pick(candidates, s) for s in range(9)] == [pick(reordered, s) for s in range(9)]


# Which


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (victims(9, 9), victims(0, violations=1)),
        (victims(1, 1, 1), victims(2)),
        (victims(2, 0), victims(2, 1)),
        (victims(-5), victims(-5, -10)),
        (victims(1), victims(1, 0)),
        (
            victims(1, start="2026-01-02T00:00:00Z"),
            victims(1, start="2026-01-01T00:00:00Z"),
        ),
        (victims(1), victims(1, start="2026-01-01T00:00:00Z")),
    ],
    ids=["budgets", "first", "sum", "negative", "count", "latest", "not started"],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_least_is_lost(better, worse, seed):
    pick = made("DefaultPreemption").pick
    assert pick({NodeName("a"): better, NodeName("b"): worse}, seed) == "a"
    assert pick({NodeName("a"): worse, NodeName("b"): better}, seed) == "b"


def test_only_the_start_of_the_most_important_victims_counts():
    def pair(high, low):
        pods = [make_pod("h").priority(5), make_pod("l").priority(1)]
        for pod, start in zip(pods, (high, low), strict=True):
            pod.raw["status"]["startTime"] = f"2026-01-0{start}T00:00:00Z"
        return Victims(tuple(pod.obj() for pod in pods), 0)

    pick = made("DefaultPreemption").pick
    assert pick({NodeName("a"): pair(1, 9), NodeName("b"): pair(2, 1)}, 0) == "b"


# What is said


def test_the_message_of_success():
    result = preempt(FakeUnplaced({"n0": victims(3, 1)}))
    assert result.message == (
        "preemption: found a potential placement for pod on node n0, preempting 2 victims"
    )
    assert (result.nominated, result.clear) == ("n0", False)
    assert [p.metadata.name for p in result.victims.pods] == ["v0", "v1"]


def test_the_message_where_nothing_helps():
    outcomes = {"n0": SHORT, "n1": SHORT, "n2": NOBODY}
    result = preempt(FakeUnplaced(outcomes, others=3))
    assert result.message == (
        "preemption: 0/6 nodes are available: 1 No preemption victims found for incoming pod, "
        "2 Insufficient cpu, 3 Preemption is not helpful for scheduling."
    )
    assert (result.nominated, result.victims, result.clear) == (None, None, True)


def test_the_message_where_no_node_can_be_helped():
    result = preempt(FakeUnplaced({}, others=2))
    assert result.message == (
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert result.clear


def test_who_never_preempts():
    pod = make_pod("p").priority(10)
    pod.raw["spec"]["preemptionPolicy"] = "Never"
    unplaced = FakeUnplaced({"n0": victims(1)})
    result = preempt(unplaced, pod.obj())
    assert result.message == "preemption: not eligible due to preemptionPolicy=Never."
    assert (result.nominated, result.clear, unplaced.tried) == (None, False, [])


def leaving(*, reason="PreemptionByScheduler", status="True", priority=0, type_="DisruptionTarget"):
    pod = make_pod("leaving").priority(priority).deleting()
    pod.raw["status"]["conditions"] = [{"type": type_, "status": status, "reason": reason}]
    return pod


WAITS = "preemption: not eligible due to a terminating pod on the nominated node."


def told(pod, verdict=SHORT):
    unplaced = FakeUnplaced({"n0": victims(1)}, verdicts={"n0": verdict}, pods={"n0": (pod.obj(),)})
    return preempt(unplaced, promised(make_pod("p").priority(10), "n0").obj())


def test_who_waits_for_victims_to_leave_does_not_preempt_again():
    result = told(leaving())
    assert result.message == WAITS
    assert (result.nominated, result.clear) == (None, False)


@pytest.mark.parametrize(
    "other",
    [
        leaving(reason="EvictionByEvictionAPI"),
        leaving(status="False"),
        leaving(type_="Ready"),
        leaving(priority=10),
        leaving(priority=11),
        make_pod("staying").priority(0),
    ],
    ids=["evicted", "status", "type", "equal", "higher", "staying"],
)
def test_others_on_the_nominated_node_do_not_matter(other):
    assert told(other).nominated == "n0"


def test_a_promise_that_cannot_be_kept_does_not_matter():
    assert told(leaving(), verdict=HOPELESS).nominated == "n0"


def test_only_the_first_disruption_condition_counts():
    pod = leaving(reason="EvictionByEvictionAPI")
    pod.raw["status"]["conditions"] += leaving().raw["status"]["conditions"]
    assert told(pod).nominated == "n0"


# What fails


def test_a_failed_dry_run_matters_only_where_nothing_else_works():
    unplaced = FakeUnplaced({"n0": DryRunError("boom"), "n1": victims(1)})
    assert preempt(unplaced).nominated == "n1"
    with pytest.raises(DryRunError, match="boom"):
        preempt(FakeUnplaced({"n0": SHORT, "n1": DryRunError("boom")}))


def test_all_different_failures_are_named():
    outcomes = {"n0": DryRunError("one"), "n1": DryRunError("two"), "n2": DryRunError("one")}
    with pytest.raises(DryRunError, match=r"^\[one, two\]$"):
        preempt(FakeUnplaced(outcomes))
