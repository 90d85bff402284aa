"""Many rows judged at once, each as it would be with some pods more or less."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.evaluation.trial import Trial
from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.views.base import Codes
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.state.delta import Delta, Deltas
from k8s_scheduler.core.state.nodes.node_table import Rows

if TYPE_CHECKING:
    from k8s_scheduler.core.framework.evaluation.runtime import Runtime


class Together:
    """Rows that are judged together, and what differs on each. The deltas stay as they are."""

    __slots__ = ("_rows", "_shown", "deltas")

    def __init__(self, deltas: Sequence[Delta]) -> None:
        self.deltas = deltas
        self._rows: Rows = np.array([delta.row for delta in deltas], dtype=np.int64)
        self._shown = Deltas(deltas)

    def judge(
        self,
        runtime: "Runtime",
        profile: Profile,
        terms: Mapping[str, Term],
        reads: Reads | None = None,
    ) -> Codes:
        """Return for each row the code of the first filter that rejects it; 0 if it passes."""
        codes: Codes = np.zeros(len(self.deltas), dtype=np.int64)
        rows, shown = self._rows, self._shown
        left: npt.NDArray[np.intp] = np.arange(len(rows))
        for step in profile.filters:
            if step.name not in terms or not len(left):
                continue
            found = runtime.filter(step, terms[step.name], rows, shown, reads)
            if not np.count_nonzero(found):
                continue
            codes[left] = found
            left = left[found == 0]
            rows = self._rows[left]
            shown = Deltas([self.deltas[place] for place in left.tolist()])
        return codes


def judge_all(
    runtime: "Runtime",
    profile: Profile,
    terms: Mapping[str, Term],
    trials: Sequence[Trial],
    reads: Reads | None = None,
) -> Codes:
    """Return for each trial the code of the first filter that rejects its row; 0 if it passes.

    Those for which plugins have the `terms` of the row as it is are judged together. What is read
    for it is taken down in `reads`; trials take down their own.
    """
    codes: Codes = np.zeros(len(trials), dtype=np.int64)
    alike = [place for place, trial in enumerate(trials) if not trial.has_own_terms]
    if alike:
        together = Together([trials[place].delta for place in alike])
        codes[alike] = together.judge(runtime, profile, terms, reads)
    for place, trial in enumerate(trials):
        if trial.has_own_terms:
            codes[place] = trial.judge()
    return codes
