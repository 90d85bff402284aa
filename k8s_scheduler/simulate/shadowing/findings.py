"""What is found out about one binding: how the chosen node stood among all nodes.

What can be known of another scheduler's choice is limited. It takes any of the nodes with the
highest total, so agreement means: among the best. In clusters of 100 nodes and more kube-scheduler
looks at nodes in turn until it has found enough that fit, and which those were is not told: a
choice is then only contradicted when more nodes were better than it can have left out.
"""

from dataclasses import dataclass
from enum import StrEnum

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.core.inspection import MIN_NODES, Judgement, Verdict, nodes_to_find

_ALL = 100
_ADAPTIVE_START = 50
_ADAPTIVE_STEP = 125
_ADAPTIVE_LEAST = 5


class Result(StrEnum):
    """How a binding stands; the values are label values and keys of the report."""

    BEST = "best"
    NOMINATED = "nominated"
    SAMPLED = "sampled"
    EXPLAINED = "explained"
    WORSE = "worse"
    INFEASIBLE = "infeasible"
    FAILED = "failed"


AGREES = frozenset({Result.BEST, Result.NOMINATED, Result.SAMPLED, Result.EXPLAINED})


@dataclass(frozen=True, slots=True)
class Standing:
    """How a node stands in a judgement; `verdict` None of an infeasible one: it is not known."""

    feasible: bool
    total: int = 0
    best: int = 0
    # Nodes with a higher total, and nodes with the highest.
    better: int = 0
    ties: int = 0
    feasible_count: int = 0
    node_count: int = 0
    verdict: Verdict | None = None

    @property
    def regret(self) -> int:
        return self.best - self.total

    @property
    def is_best(self) -> bool:
        return self.feasible and not self.better


@dataclass(frozen=True, slots=True)
class Finding:
    """One binding, judged. `standing` is of the state just before it was seen."""

    at: float
    pod: str
    profile: str
    node: str
    result: Result
    standing: Standing | None = None
    # Which changes, seen so close to the binding that they may have been decided the other way
    # round, make the choice the best one; and how many there were in all.
    race: tuple[str, ...] = ()
    race_size: int = 0
    # What happened within the latency, whether or not it explains anything.
    changes_near: int = 0
    has_claims: bool = False
    error: str = ""


def standing_of(judgement: Judgement, node: NodeName) -> Standing:
    count = len(judgement.feasible) + len(judgement.rejected)
    if node not in judgement.totals:
        return Standing(
            feasible=False,
            feasible_count=len(judgement.feasible),
            node_count=count,
            verdict=judgement.rejected.get(node),
        )
    total, best = judgement.totals[node], max(judgement.totals.values())
    return Standing(
        feasible=True,
        total=total,
        best=best,
        better=sum(other > total for other in judgement.totals.values()),
        ties=sum(other == best for other in judgement.totals.values()),
        feasible_count=len(judgement.feasible),
        node_count=count,
    )


def may_be_best_of_sample(standing: Standing, percentage: int) -> bool:
    """Return whether every better node can be one that was not looked at.

    `percentage` is the other scheduler's percentageOfNodesToScore; 0 is its own choice by size.
    """
    if not standing.feasible or standing.node_count < MIN_NODES or percentage >= _ALL:
        return False
    share = percentage or adaptive_percentage(standing.node_count)
    left_out = standing.feasible_count - nodes_to_find(standing.node_count, share)
    return 0 < standing.better <= left_out


def adaptive_percentage(node_count: int) -> int:
    """Return the share of nodes that kube-scheduler looks for when nothing is configured."""
    return max(_ADAPTIVE_START - node_count // _ADAPTIVE_STEP, _ADAPTIVE_LEAST)


def reason_text(verdict: Verdict | None) -> str:
    if verdict is None:
        return "the node is not known"
    texts = ", ".join(reason.text for reason in verdict.reasons)
    return f"{'+'.join(verdict.blamed)}: {texts}"
