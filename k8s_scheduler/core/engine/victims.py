"""Who is more important than whom, and whom disruption budgets protect."""

from collections.abc import Iterable
from dataclasses import dataclass

from k8s_scheduler.api.label_selectors import Requirements, SelectorError, matches, requirements_of
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.workloads import PodDisruptionBudget
from k8s_scheduler.core.state.delta import PlacedPod

# A pod that has not started yet started later than any other.
_NOT_STARTED = "~"


def importance(pod: Pod) -> tuple[int, str, str]:
    """Return a key by which more important pods come first: priority, then age.

    kube-scheduler leaves those that started in the same second in the order in which it learnt of
    them; who was created first is nearly always the same, and does not depend on who looks.
    """
    started = pod.status.start_time or _NOT_STARTED
    return -(pod.spec.priority or 0), started, pod.metadata.creation_timestamp


@dataclass(frozen=True, slots=True)
class _Budget:
    namespace: str
    selector: Requirements
    allowed: int
    disrupted: frozenset[str]

    def covers(self, pod: Pod) -> bool:
        metadata = pod.metadata
        return (
            self.namespace == metadata.namespace
            and matches(self.selector, metadata.labels or {})
            and metadata.name not in self.disrupted
        )


class Budgets:
    """The disruption budgets of the cluster, at one moment."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._budgets = [found for found in map(_budget, budgets) if found is not None]

    def divide(self, pods: Iterable[PlacedPod]) -> tuple[list[PlacedPod], list[PlacedPod]]:
        """Return those whose leaving, in this order, a budget forbids, and the others."""
        left = [budget.allowed for budget in self._budgets]
        violating: list[PlacedPod] = []
        harmless: list[PlacedPod] = []
        for placed in pods:
            (violating if self._violates(placed.pod, left) else harmless).append(placed)
        return violating, harmless

    def _violates(self, pod: Pod, left: list[int]) -> bool:
        """Count a pod against its budgets, up to the first that it exceeds."""
        if not pod.metadata.labels:
            return False
        for index, budget in enumerate(self._budgets):
            if budget.covers(pod):
                left[index] -= 1
                if left[index] < 0:
                    return True
        return False


def _budget(budget: PodDisruptionBudget) -> _Budget | None:
    """Return a budget that covers something; one that can't be parsed covers nothing."""
    try:
        selector = requirements_of(budget.spec.selector)
    except SelectorError:
        return None
    if not selector:
        return None
    return _Budget(
        budget.metadata.namespace,
        selector,
        budget.status.disruptions_allowed,
        frozenset(budget.status.disrupted_pods or ()),
    )
