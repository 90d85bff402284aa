"""The arguments of PodTopologySpread: constraints for pods that have none of their own.

Each pod's labels come from what owns it, so a default constraint may not select. kube-scheduler
leaves `minDomains` and the two policies unchecked here; a value that the API server would refuse
in a pod is refused.
"""

from typing import Annotated, Any, Final, Self

import msgspec

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.config.field_errors import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from k8s_scheduler.api.config.rules import RULE, Choice, Configured, Int32, Range
from k8s_scheduler.api.names import QUALIFIED_NAME_RULE, is_qualified_name

SYSTEM_DEFAULTING: Final = "System"
LIST_DEFAULTING: Final = "List"

_ACTIONS: Final = Choice(("DoNotSchedule", "ScheduleAnyway"))
_POLICIES: Final = Choice(("Honor", "Ignore"))
_DEFAULTING: Final = Choice((SYSTEM_DEFAULTING, LIST_DEFAULTING))
_MAX_SKEW: Final = Range(1, None, "not in valid range (0, inf)")
_MIN_DOMAINS: Final = Range(1, None, "must be greater than 0")


class DefaultConstraint(Configured, frozen=True):
    """A topology spread constraint as pods have it."""

    max_skew: Annotated[Int32, msgspec.Meta(extra={RULE: _MAX_SKEW})] = 0
    topology_key: str = ""
    when_unsatisfiable: Annotated[str, msgspec.Meta(extra={RULE: _ACTIONS})] = ""
    label_selector: dict[str, Any] | None = None
    min_domains: Annotated[Int32, msgspec.Meta(extra={RULE: _MIN_DOMAINS})] | None = None
    node_affinity_policy: Annotated[str, msgspec.Meta(extra={RULE: _POLICIES})] | None = None
    node_taints_policy: Annotated[str, msgspec.Meta(extra={RULE: _POLICIES})] | None = None
    match_label_keys: tuple[str, ...] = ()


class PodTopologySpreadArgs(PluginArgs, frozen=True):
    """Arguments of PodTopologySpread: kube-scheduler's own constraints, or those listed here."""

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: Annotated[str, msgspec.Meta(extra={RULE: _DEFAULTING})] = SYSTEM_DEFAULTING

    def completed(self) -> Self:
        """Take an empty type for none."""
        kind = self.defaulting_type or SYSTEM_DEFAULTING
        return msgspec.structs.replace(self, defaulting_type=kind)

    def broken_rules(self, path: FieldPath) -> list[FieldError]:
        """Check the constraints, and that they are not given in vain or twice."""
        errors: list[FieldError] = []
        if self.defaulting_type == SYSTEM_DEFAULTING and self.default_constraints:
            at = (*path, "defaultingType")
            detail = 'when .defaultConstraints are not empty; set it to "List"'
            errors.append(invalid(at, self.defaulting_type, detail))
        first: dict[tuple[str, str], FieldPath] = {}
        for i, constraint in enumerate(self.default_constraints):
            at = (*path, "defaultConstraints", i)
            errors += _constraint(constraint, at)
            pair = (constraint.topology_key, constraint.when_unsatisfiable)
            if pair in first:
                errors.append(duplicate(at, f"{{{pair[0]}, {pair[1]}}}", first=first[pair]))
            elif all(pair):
                first[pair] = at
        return errors


def _constraint(constraint: DefaultConstraint, path: FieldPath) -> list[FieldError]:
    errors = []
    if not constraint.max_skew:
        errors.append(invalid((*path, "maxSkew"), constraint.max_skew, _MAX_SKEW.detail))
    if not constraint.topology_key:
        errors.append(required((*path, "topologyKey"), "can not be empty"))
    elif not is_qualified_name(constraint.topology_key):
        at = (*path, "topologyKey")
        errors.append(invalid(at, constraint.topology_key, QUALIFIED_NAME_RULE))
    if not constraint.when_unsatisfiable:
        errors.append(required((*path, "whenUnsatisfiable"), "can not be empty"))
    policies = {
        "nodeAffinityPolicy": constraint.node_affinity_policy,
        "nodeTaintsPolicy": constraint.node_taints_policy,
    }
    for name, policy in policies.items():
        if policy == "":
            errors.append(unsupported((*path, name), policy, _POLICIES.values))
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        errors.append(forbidden((*path, "labelSelector"), detail))
    return errors
