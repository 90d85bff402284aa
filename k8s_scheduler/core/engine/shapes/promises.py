"""The pods that were promised room, counted in for a single pod."""

from collections.abc import Mapping

import numpy as np

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.evaluation.runtime import Nominated, PreFiltered, Runtime
from k8s_scheduler.core.framework.evaluation.trial import counting_steps
from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.views.base import Codes, Mask
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.protocols import Tables


class Promises:
    """What those nominated to rows leave to a pod."""

    def __init__(
        self, state: Tables, runtime: Runtime, profile: Profile, nominated: Nominated
    ) -> None:
        self._state = state
        self._runtime = runtime
        self._profile = profile
        self._nominated = nominated

    def prepare(self, pod: PodView, terms: dict[str, Term]) -> None:
        """Put the pod's own terms in place of those that were prepared for another one.

        Where pods are counted in, they may be asked what the other one was never asked.
        """
        everywhere = self._state.nodes.present_rows()
        for step, _ in counting_steps(self._profile, terms):
            terms[step.name] = self._runtime.prepare(step, pod, everywhere)

    def left_of(
        self, rows: Rows, terms: Mapping[str, Term], names: frozenset[NodeName] | None
    ) -> Rows:
        """Return those of the rows that pass with the promised pods, too; all are as they are."""
        everywhere = self._state.nodes.present_rows()
        is_many = names is None and len(rows) > 1 and not counting_steps(self._profile, terms)
        # Of all rows together, much is known from the last time.
        asked = everywhere if is_many else rows
        codes: Codes = np.zeros(len(asked), dtype=np.int64)
        self.count_in(PreFiltered(CycleState(terms), None, names), asked, codes)
        if not np.count_nonzero(codes):
            return rows
        if asked is rows:
            passed: Rows = rows[codes == 0]
            return passed
        passes: Mask = np.ones(self._state.nodes.row_count, dtype=np.bool_)
        passes[asked[codes != 0]] = False
        left: Rows = rows[passes[rows]]
        return left

    def count_in(self, before: PreFiltered, rows: Rows, codes: Codes) -> None:
        """Write into the codes of rows what the promised pods change."""
        self._runtime.promised.count_in(
            self._profile, before, self._nominated, rows=rows, codes=codes
        )
