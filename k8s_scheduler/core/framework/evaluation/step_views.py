"""The views through which the plugins of a profile see rows."""

from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.base import Reader
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.framework.views.rows_view import RowsView, Scores
from k8s_scheduler.core.state.delta import Delta, Deltas
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.protocols import Tables


class StepViews:
    """Makes views; those of all nodes are kept as long as the nodes are the same."""

    def __init__(self, state: Tables, verdicts: VerdictTable) -> None:
        self._state = state
        self._verdicts = verdicts
        # Views of all nodes, by what they show.
        self._whole_views: dict[Declarations, RowsView] = {}
        self._layout: tuple[Rows | None, Rows | None] = (None, None)

    def _whole_view(self, step: Reader, rows: Rows) -> RowsView:
        before, everywhere = self._layout
        if rows is not before or self._state.nodes.all_rows is not everywhere:
            self._layout = (rows, self._state.nodes.all_rows)
            self._whole_views.clear()
        found = self._whole_views.get(step.declared)
        if found is None:
            found = RowsView(self._state, rows, step, self._verdicts)
            self._whole_views[step.declared] = found
        return found

    def view(
        self,
        step: Reader,
        rows: Rows,
        delta: Delta | Deltas | None = None,
        reads: Reads | None = None,
        *,
        wide: bool = False,
        multiplicity: Scores | None = None,
    ) -> RowsView:
        """Return what a plugin may see of some rows; `reads` takes down what it reads."""
        if reads is None and delta is None and rows is self._state.nodes.present_rows():
            return self._whole_view(step, rows)
        found = RowsView(self._state, rows, step, self._verdicts, delta=delta, reads=reads)
        if wide or multiplicity is not None:
            found.seen_as(wide=wide, multiplicity=multiplicity)
        return found
