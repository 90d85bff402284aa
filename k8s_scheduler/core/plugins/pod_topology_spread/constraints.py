"""Constraints ready to be counted: selectors read, absent fields filled in.

`DoNotSchedule` makes a constraint hard (Filter), `ScheduleAnyway` soft (Score).
"""

from dataclasses import dataclass
from typing import Final

from k8s_scheduler.api.pod import TopologySpreadConstraint
from k8s_scheduler.api.selectors.labels import (
    NOTHING,
    Requirements,
    pairs_of,
    requirements_of,
)
from k8s_scheduler.core.framework.views.pod_view import PodView

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

_HONOR: Final = "Honor"
_DEFAULT_MIN_DOMAINS: Final = 1


@dataclass(frozen=True, slots=True)
class Constraint:
    """How unevenly the selected pods may lie over the domains of one topology key."""

    key: str
    max_skew: int
    min_domains: int
    selector: Requirements | None
    # Whether nodes that the pod's node affinity, or its tolerations, rule out are left uncounted.
    honors_affinity: bool
    honors_taints: bool

    def picks(self, pod: PodView) -> bool:
        """Return whether a pod is one of those to be spread, wherever it lives."""
        return pod.is_selected_by(self.selector)


def readable(pod: PodView, action: str) -> tuple[Constraint, ...]:
    """Return a pod's own constraints with this action.

    Raises SelectorError for a selector that can't be read; those of other actions are not looked
    at.
    """
    return tuple(
        constraint_of(c, _selector(c, pod))
        for c in pod.spread_constraints
        if c.when_unsatisfiable == action
    )


def constraint_of(
    constraint: TopologySpreadConstraint, selector: Requirements | None
) -> Constraint:
    """Return a constraint that spreads what the selector picks."""
    affinity_policy = constraint.node_affinity_policy
    min_domains = constraint.min_domains
    return Constraint(
        key=constraint.topology_key,
        max_skew=constraint.max_skew,
        min_domains=_DEFAULT_MIN_DOMAINS if min_domains is None else min_domains,
        selector=selector,
        honors_affinity=affinity_policy is None or affinity_policy == _HONOR,
        honors_taints=constraint.node_taints_policy == _HONOR,
    )


def _selector(constraint: TopologySpreadConstraint, pod: PodView) -> Requirements | None:
    """Return the selector with `matchLabelKeys` as the pod's labels answer them."""
    selector = requirements_of(constraint.label_selector)
    if selector is NOTHING or not constraint.match_label_keys:
        return selector
    return (*pairs_of(pod.labels_of(constraint.match_label_keys)), *selector)
