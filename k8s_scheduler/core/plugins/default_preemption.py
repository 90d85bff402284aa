"""DefaultPreemption: where no node takes a pod, find the node where the least would be lost.

PostFilter. A pod that may not preempt, or whose victims are still on their way out, is left
alone. Otherwise nodes that could take the pod if others left are tried, at least
`minCandidateNodesPercentage` of them and `minCandidateNodesAbsolute`, from a place that changes
with each attempt. Of those where it works, one is chosen by, in this order: fewest budget
violations, least important first victim, smallest sum of priorities, fewest victims, latest start
of the earliest among the most important victims. Ties are left to the attempt's seed.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar, Final

import msgspec

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.config.field_errors import FieldError, FieldPath, invalid
from k8s_scheduler.api.config.rules import RULE, Int32, Range
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.dependencies import Dependency, Object
from k8s_scheduler.core.framework.diagnosis import Diagnosis
from k8s_scheduler.core.framework.preemption import (
    DryRunError,
    PostFilterResult,
    UnplacedPod,
    Victims,
)
from k8s_scheduler.core.framework.reasons import Reason, Verdict

NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = Verdict(
    "DefaultPreemption",
    (
        Reason(
            code="DefaultPreemption/NoVictims",
            text="No preemption victims found for incoming pod",
        ),
    ),
    resolvable=False,
)
NOT_HELPFUL = Verdict(
    "DefaultPreemption",
    (
        Reason(
            code="DefaultPreemption/NotHelpful",
            text="Preemption is not helpful for scheduling",
        ),
    ),
    resolvable=False,
)
# Priorities are shifted so that none is negative: a sum must not get smaller with more victims.
_OFFSET = 2**31
_LATEST = "~"
_PERCENTAGE: Final = Range(0, 100, "not in valid range [0, 100]")
_COUNT: Final = Range(0, None, "not in valid range [0, inf)")


class DefaultPreemptionArgs(PluginArgs, frozen=True):
    """Arguments of DefaultPreemption: on how many nodes victims are looked for."""

    min_candidate_nodes_percentage: Annotated[Int32, msgspec.Meta(extra={RULE: _PERCENTAGE})] = 10
    min_candidate_nodes_absolute: Annotated[Int32, msgspec.Meta(extra={RULE: _COUNT})] = 100

    def broken_rules(self, path: FieldPath) -> list[FieldError]:
        """Check that there is something to go by."""
        if self.min_candidate_nodes_percentage or self.min_candidate_nodes_absolute:
            return []
        both = ("minCandidateNodesPercentage", "minCandidateNodesAbsolute")
        return [
            invalid((*path, name), 0, f"cannot be zero at the same time as {other}")
            for name, other in (both, both[::-1])
        ]


class DefaultPreemption:
    """Where no node takes a pod, nominates the one where the least would be lost.

    Less important pods have to leave it.
    """

    name: ClassVar[str] = "DefaultPreemption"
    arguments: ClassVar[type[PluginArgs]] = DefaultPreemptionArgs
    reasons: ClassVar[tuple[Reason, ...]] = (*NO_VICTIMS.reasons, *NOT_HELPFUL.reasons)
    depends_on: ClassVar[tuple[Dependency, ...]] = (Object(Kind.POD_DISRUPTION_BUDGET),)

    def __init__(self, args: DefaultPreemptionArgs) -> None:
        """Take how many candidates are enough."""
        self._percentage = args.min_candidate_nodes_percentage
        self._absolute = args.min_candidate_nodes_absolute

    def post_filter(self, state: CycleState, pod: Pod, unplaced: UnplacedPod) -> PostFilterResult:
        """Return the node and its victims; DryRunError if dry runs failed and none worked."""
        if refusal := self.not_eligible(pod, unplaced):
            return PostFilterResult(f"preemption: {refusal}")
        wanted = self._wanted(unplaced.resolvable_count())
        candidates, refused = self.candidates(unplaced, wanted)
        if not candidates:
            message = _no_candidate(unplaced, refused)
            return PostFilterResult(f"preemption: {message}", clear=True)
        node = self.pick(candidates, unplaced.seed())
        victims = candidates[node]
        return PostFilterResult(
            f"preemption: found a potential placement for pod on node {node}, "
            f"preempting {len(victims.pods)} victims",
            nominated=node,
            victims=victims,
        )

    def not_eligible(self, pod: Pod, unplaced: UnplacedPod) -> str:
        """Return why the pod may not preempt now; empty if it may."""
        if pod.spec.preemption_policy == "Never":
            return NEVER
        nominated = NodeName(pod.status.nominated_node_name)
        if not nominated:
            return ""
        verdict = unplaced.verdict_on(nominated)
        if verdict is not None and not verdict.resolvable:
            # The promise can't be kept: look for another place.
            return ""
        priority = pod.spec.priority or 0
        for other in unplaced.pods_on(nominated):
            if (other.spec.priority or 0) < priority and _is_leaving_for_another(other):
                return TERMINATING
        return ""

    def candidates(
        self, unplaced: UnplacedPod, wanted: int
    ) -> tuple[dict[NodeName, Victims], dict[NodeName, Verdict]]:
        """Return nodes with their victims, at least `wanted` if there are, and who can't help.

        Goes on until one without a budget violation is among them. Raises DryRunError if dry
        runs failed and none worked.
        """
        nodes = unplaced.nodes_with_lesser()
        offset = unplaced.seed() % len(nodes) if nodes else 0
        harmless: dict[NodeName, Victims] = {}
        violating: dict[NodeName, Victims] = {}
        refused: dict[NodeName, Verdict] = {}
        failures: dict[str, None] = {}
        for node in (*nodes[offset:], *nodes[:offset]):
            try:
                found = unplaced.dry_run(node)
            except DryRunError as error:
                failures[str(error)] = None
                continue
            if isinstance(found, Verdict):
                refused[node] = found
                continue
            (violating if found.pdb_violations else harmless)[node] = found
            if harmless and len(harmless) + len(violating) >= wanted:
                break
        if failures and not harmless and not violating:
            said = list(failures)
            raise DryRunError(said[0] if len(said) == 1 else f"[{', '.join(said)}]")
        return harmless | violating, refused

    def pick(self, candidates: Mapping[NodeName, Victims], seed: int) -> NodeName:
        """Return the node where the least is lost."""
        left = sorted(candidates)
        for loss in _LOSSES:
            least = min(loss(candidates[node]) for node in left)
            left = [node for node in left if loss(candidates[node]) == least]
        left = _latest([(_earliest_start(candidates[node]), node) for node in left])
        return left[seed % len(left)]

    def _wanted(self, nodes: int) -> int:
        return min(nodes, max(nodes * self._percentage // 100, self._absolute))


_LOSSES: tuple[Callable[[Victims], int], ...] = (
    lambda victims: victims.pdb_violations,
    lambda victims: victims.pods[0].spec.priority or 0,
    lambda victims: sum((pod.spec.priority or 0) + _OFFSET for pod in victims.pods),
    lambda victims: len(victims.pods),
)


def _earliest_start(victims: Victims) -> str:
    """Return when the first of the most important victims started; times compare as text."""
    highest = max(pod.spec.priority or 0 for pod in victims.pods)
    return min(
        pod.status.start_time or _LATEST
        for pod in victims.pods
        if (pod.spec.priority or 0) == highest
    )


def _latest(starts: list[tuple[str, NodeName]]) -> list[NodeName]:
    latest = max(start for start, _ in starts)
    return [node for start, node in starts if start == latest]


def _is_leaving_for_another(pod: Pod) -> bool:
    """Return whether a pod is terminating because a scheduler preempted it."""
    if pod.metadata.deletion_timestamp is None:
        return False
    for condition in pod.status.conditions or ():
        if condition.type == "DisruptionTarget":
            return condition.status == "True" and condition.reason == "PreemptionByScheduler"
    return False


def _no_candidate(unplaced: UnplacedPod, refused: Mapping[NodeName, Verdict]) -> str:
    counts: dict[Verdict, int] = {}
    # Most nodes have the very verdict of the one before, and looking one up takes long.
    last, run = None, 0
    for verdict in refused.values():
        if verdict is not last and last is not None:
            counts[last] = counts.get(last, 0) + run
            run = 0
        last, run = verdict, run + 1
    if last is not None:
        counts[last] = counts.get(last, 0) + run
    without_victims = unplaced.resolvable_count() - len(refused)
    if without_victims:
        counts[NO_VICTIMS] = without_victims
    useless = unplaced.node_count() - unplaced.resolvable_count()
    if useless:
        counts[NOT_HELPFUL] = useless
    return Diagnosis(node_count=unplaced.node_count(), verdicts=tuple(counts.items())).message()
