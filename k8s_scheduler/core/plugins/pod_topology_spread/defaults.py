"""Constraints for pods that have none of their own.

What is spread then are the pods with the same services and the same owner as the newcomer. A pod
that nothing selects is not spread.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from k8s_scheduler.api.config.encode import encode
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.pod import TopologySpreadConstraint
from k8s_scheduler.api.selectors.labels import (
    NOTHING,
    Requirements,
    SelectorError,
    pairs_of,
    requirements_of,
)
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.plugins.pod_topology_spread.arguments import (
    SYSTEM_DEFAULTING,
    PodTopologySpreadArgs,
)
from k8s_scheduler.core.plugins.pod_topology_spread.constraints import (
    HOSTNAME,
    SCHEDULE_ANYWAY,
    ZONE,
    Constraint,
    constraint_of,
)

_SYSTEM_CONSTRAINTS: Final = (
    TopologySpreadConstraint(3, HOSTNAME, SCHEDULE_ANYWAY),
    TopologySpreadConstraint(5, ZONE, SCHEDULE_ANYWAY),
)


@dataclass(frozen=True, slots=True)
class Defaults:
    """The default constraints of a profile: the built-in ones, or a list."""

    constraints: tuple[TopologySpreadConstraint, ...]
    is_system: bool

    @classmethod
    def of(cls, args: PodTopologySpreadArgs) -> "Defaults":
        if args.defaulting_type == SYSTEM_DEFAULTING:
            return cls(_SYSTEM_CONSTRAINTS, is_system=True)
        listed = [encode(constraint) for constraint in args.default_constraints]
        found = msgspec.convert(listed, tuple[TopologySpreadConstraint, ...])
        return cls(found, is_system=False)

    def applied(self, pod: PodView, rows: RowsView, action: str) -> tuple[Constraint, ...]:
        """Return the constraints with this action; none for a pod that nothing selects."""
        wanted = [c for c in self.constraints if c.when_unsatisfiable == action]
        if not wanted:
            return ()
        selector = default_selector(pod, rows)
        return tuple(constraint_of(c, selector) for c in wanted) if selector else ()


def default_selector(pod: PodView, rows: RowsView) -> Requirements:
    """Return what selects the pod: its services and its owner. Empty if nothing does."""
    pairs = _pairs_of_services(pod, rows)
    owner = pod.controller
    if owner is None:
        return pairs_of(pairs)
    found = rows.object(owner.kind, pod.namespace, owner.name)
    if found is None:
        return pairs_of(pairs)
    if owner.kind is Kind.REPLICATION_CONTROLLER:
        # Of two values for one key the owner's counts, as if the services had never had it.
        return pairs_of({**pairs, **(found.spec.selector or {})})
    try:
        of_owner = requirements_of(found.spec.selector)
    except SelectorError:
        of_owner = NOTHING
    return (*pairs_of(pairs), *(of_owner or ()))


def _pairs_of_services(pod: PodView, rows: RowsView) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for service in rows.objects(Kind.SERVICE, pod.namespace):
        selector = service.spec.selector
        if selector and pod.has_labels(selector):
            pairs |= selector
    return pairs
