"""Which pods are more important than others, and which ones disruption budgets protect."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.selectors.labels import (
    IN,
    Requirements,
    SelectorError,
    matches,
    requirements_of,
)
from k8s_scheduler.api.workloads import PodDisruptionBudget
from k8s_scheduler.core.state.delta import PlacedPod
from k8s_scheduler.core.state.selector_index import Numbers, SelectorIndex

# A pod that has not started yet started later than any other.
_NOT_STARTED = "~"


def importance(pod: Pod) -> tuple[int, str, str]:
    """Return a key by which more important pods come first: priority, then age.

    kube-scheduler leaves those that started in the same second in the order in which it learnt of
    them; who was created first is nearly always the same, and does not depend on who looks.
    """
    started = pod.status.start_time or _NOT_STARTED
    return -(pod.spec.priority or 0), started, pod.metadata.creation_timestamp


# Returns the budgets of a namespace, by name: the same tuple as long as they are the same.
ListBudgets = Callable[[str], tuple[PodDisruptionBudget, ...]]
_Pair = tuple[str, str]
# So many namespaces' budgets are kept as they were read.
_NAMESPACES: Final = 1024
# So many ticks without a question, and they are forgotten: a tenant may have thousands.
_IDLE: Final = 16
# So few budgets are asked one by one.
_FEW: Final = 16


@dataclass(frozen=True, slots=True)
class _Budget:
    selector: Requirements
    allowed: int
    disrupted: frozenset[str]


class _OfNamespace:
    """The budgets of one namespace, in the order of their names.

    They are found by a label pair that they demand, so that many of them cost pods that they do not
    cover nothing. Those that demand none are asked all at once.
    """

    __slots__ = ("_by_pair", "_index", "_others", "allowed", "budgets", "listed")

    def __init__(self, listed: tuple[PodDisruptionBudget, ...]) -> None:
        self.listed = listed
        self.budgets = [found for found in map(_budget, listed) if found is not None]
        # How many pods may leave, by budget.
        self.allowed: Numbers = np.array([b.allowed for b in self.budgets], dtype=np.int64)
        self._by_pair: dict[_Pair, list[int]] = {}
        # Those that demand no particular pair.
        self._others: list[int] = []
        self._index = SelectorIndex()
        for number, budget in enumerate(self.budgets):
            pair = _pair_of(budget.selector)
            if pair is None:
                self._index.put(len(self._others), budget.selector)
                self._others.append(number)
            else:
                self._by_pair.setdefault(pair, []).append(number)

    def covering(self, pod: Pod) -> list[int]:
        """Return which of the budgets cover a pod, in their order."""
        labels = pod.metadata.labels
        if not labels:
            return []
        numbers = self._others_picking(labels)
        for pair in labels.items():
            for number in self._by_pair.get(pair, ()):
                if matches(self.budgets[number].selector, labels):
                    numbers.append(number)
        name = pod.metadata.name
        return [n for n in sorted(numbers) if name not in self.budgets[n].disrupted]

    def _others_picking(self, labels: Mapping[str, str]) -> list[int]:
        others, budgets = self._others, self.budgets
        if len(others) <= _FEW:
            return [number for number in others if matches(budgets[number].selector, labels)]
        unmet = self._index.unmet(labels, len(others))
        return [others[place] for place in np.flatnonzero(unmet == 0).tolist()]


class Budgets:
    """The disruption budgets of the cluster, read by namespace and only where pods may leave."""

    def __init__(self) -> None:
        self._known: dict[str, _OfNamespace] = {}
        # How often it was tidied since a dry run asked.
        self._idle = 0

    def tidy(self) -> None:
        """Forget budgets, which may be gone, once no dry run has asked for a while."""
        self._idle += 1
        if self._idle > _IDLE:
            self._known.clear()

    def divide(
        self, pods: Iterable[PlacedPod], listed: ListBudgets
    ) -> tuple[list[PlacedPod], list[PlacedPod]]:
        """Return those whose leaving, in this order, a budget forbids, and the others."""
        self._idle = 0
        left: dict[str, Numbers] = {}
        violating: list[PlacedPod] = []
        harmless: list[PlacedPod] = []
        here: dict[str, _OfNamespace] = {}
        for placed in pods:
            namespace = placed.pod.metadata.namespace
            found = here.get(namespace)
            if found is None:
                found = here[namespace] = self._of(namespace, listed)
            violates = bool(found.budgets) and _violates(placed.pod, found, left)
            (violating if violates else harmless).append(placed)
        return violating, harmless

    def _of(self, namespace: str, listed: ListBudgets) -> _OfNamespace:
        now = listed(namespace)
        known = self._known.get(namespace)
        if known is None or known.listed is not now:
            if known is None and len(self._known) >= _NAMESPACES:
                self._known.clear()
            known = self._known[namespace] = _OfNamespace(now)
        return known


def _violates(pod: Pod, budgets: _OfNamespace, left: dict[str, Numbers]) -> bool:
    """Count a pod against its budgets, up to the first that it exceeds."""
    numbers = budgets.covering(pod)
    if not numbers:
        return False
    namespace = pod.metadata.namespace
    allowed = left.get(namespace)
    if allowed is None:
        allowed = left[namespace] = budgets.allowed.copy()
    exceeded = np.flatnonzero(allowed[numbers] <= 0)
    counted = numbers[: int(exceeded[0]) + 1] if len(exceeded) else numbers
    allowed[counted] -= 1
    return bool(len(exceeded))


def _pair_of(selector: Requirements) -> _Pair | None:
    """Return a label pair without which a selector picks nothing."""
    for requirement in selector:
        if requirement.operator == IN and len(requirement.values) == 1:
            return requirement.key, requirement.values[0]
    return None


def _budget(budget: PodDisruptionBudget) -> _Budget | None:
    """Return a budget that covers something; one that can't be parsed covers nothing."""
    try:
        selector = requirements_of(budget.spec.selector)
    except SelectorError:
        return None
    if not selector:
        return None
    return _Budget(
        selector,
        budget.status.disruptions_allowed,
        frozenset(budget.status.disrupted_pods or ()),
    )
