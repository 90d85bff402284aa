"""PodTopologySpread: matching pods are spread evenly over the domains of a topology.

Filter, for hard constraints (`DoNotSchedule`): a node is rejected where the newcomer would make its
domain hold more than `maxSkew` pods above the emptiest one; with fewer than `minDomains` domains,
above zero. Evicting pods helps. A node without the topology key is in no domain, and nothing helps.
The first constraint that is not met speaks.

Score, for soft constraints (`ScheduleAnyway`): see `scoring`. Ties are left to the engine.

A pod without constraints gets the defaults of the profile, see `defaults`. Which nodes count is the
business of `inclusion`.
"""

from collections.abc import Iterable
from typing import ClassVar

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.selectors.labels import SelectorError
from k8s_scheduler.core.framework.departed import Departed, Quota
from k8s_scheduler.core.framework.dependencies import Dependency, Object, Row
from k8s_scheduler.core.framework.plugin import SKIP, Skip
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView, Scores
from k8s_scheduler.core.plugins.pod_topology_spread.arguments import PodTopologySpreadArgs
from k8s_scheduler.core.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    Constraint,
    readable,
)
from k8s_scheduler.core.plugins.pod_topology_spread.defaults import Defaults
from k8s_scheduler.core.plugins.pod_topology_spread.filtering import HardTerm
from k8s_scheduler.core.plugins.pod_topology_spread.scoring import SoftTerm, scaled

SKEWED = Reason(
    code="PodTopologySpread/Skewed",
    text="node(s) didn't match pod topology spread constraints",
)
NO_LABEL = Reason(
    code="PodTopologySpread/NoLabel",
    text="node(s) didn't match pod topology spread constraints (missing required label)",
)


class PodTopologySpread:
    """Spreads matching pods over the domains of a topology.

    `DoNotSchedule` constraints reject crowded domains, `ScheduleAnyway` ones prefer empty ones.
    Pods without constraints get the defaults of the profile.
    """

    name: ClassVar[str] = "PodTopologySpread"
    arguments: ClassVar[type[PluginArgs]] = PodTopologySpreadArgs
    reasons: ClassVar[tuple[Reason, ...]] = (SKEWED, NO_LABEL)
    judges_by_group: ClassVar[bool] = True
    depends_on: ClassVar[tuple[Dependency, ...]] = (
        Row("label/"),
        Row("taint_set"),
        Row("pods/labels"),
        Row("pods/terminating"),
        Object(Kind.SERVICE),
        Object(Kind.REPLICATION_CONTROLLER),
        Object(Kind.REPLICA_SET),
        Object(Kind.STATEFUL_SET),
    )

    def __init__(self, args: PodTopologySpreadArgs) -> None:
        """Take the constraints of pods that have none."""
        self._defaults = Defaults.of(args)

    # Filter

    def prepare(self, pod: PodView, rows: RowsView) -> HardTerm | Skip:
        """Find out which pods are spread. A pod without hard constraints is skipped."""
        try:
            constraints = self._constraints(pod, rows, DO_NOT_SCHEDULE)
        except SelectorError as error:
            raise StatusError(
                "get constraints from pod: "
                f"obtaining pod's hard topology spread constraints: {error}"
            ) from error
        return HardTerm.of(pod, constraints, rows) if constraints else SKIP

    def add_pod(self, term: HardTerm, pod: PodView, rows: RowsView) -> HardTerm:
        return term.with_pod(pod, rows, 1)

    def remove_pod(self, term: HardTerm, pod: PodView, rows: RowsView) -> HardTerm:
        return term.with_pod(pod, rows, -1)

    def counts(self, term: HardTerm) -> bool:
        """Every pod of the namespace may be one of those to be spread."""
        return True

    def without(self, term: HardTerm, pods: Departed, rows: RowsView) -> HardTerm:
        return term.without(pods, rows)

    def quotas(self, term: HardTerm, pods: Departed, rows: RowsView) -> Iterable[Quota]:
        """Let no more come of those that a constraint counts than its skew allows."""
        return term.quotas(pods, rows)

    def filter(self, term: HardTerm, rows: RowsView) -> Codes:
        """Reject by the first constraint that is not met."""
        return term.codes(rows, no_label=NO_LABEL, skewed=SKEWED)

    # Score

    def pre_score(self, pod: PodView, rows: RowsView) -> SoftTerm | Skip:
        """Find out which pods are spread. A pod without soft constraints is skipped."""
        try:
            constraints = self._constraints(pod, rows, SCHEDULE_ANYWAY)
        except SelectorError as error:
            raise StatusError(
                "calculating preScoreState: "
                f"obtaining pod's soft topology spread constraints: {error}"
            ) from error
        if not constraints:
            return SKIP
        needs_all_keys = bool(pod.spread_constraints) or not self._defaults.is_system
        return SoftTerm.of(pod, constraints, rows, needs_all_keys=needs_all_keys)

    def score(self, term: SoftTerm, rows: RowsView) -> Scores:
        """Return the weighted counts of each row's domains."""
        return term.score(rows)

    def normalize(self, scores: Scores) -> Scores:
        """Give the lowest raw score 100: few pods are better."""
        return scaled(scores)

    def _constraints(self, pod: PodView, rows: RowsView, action: str) -> tuple[Constraint, ...]:
        if pod.spread_constraints:
            return readable(pod, action)
        return self._defaults.applied(pod, rows, action)
