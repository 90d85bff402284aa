"""What is kept row by row, shared by all shapes to which it is the same.

Pods that differ in how they are spread, or in the pods that they want to be near to, but not in
what they take nor in which nodes they want, are judged alike row by row. What plugins said at
PreFilter and PreScore tells: equal terms on equal places make equal columns.
"""

from collections.abc import Sequence
from contextlib import suppress
from weakref import WeakValueDictionary, ref

from k8s_scheduler.core.engine.shapes.row_columns import RowColumns
from k8s_scheduler.core.engine.shapes.sizes import size_of
from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.state.protocols import Tables


class RowColumnPool:
    """The row columns that some evaluation uses."""

    def __init__(self, state: Tables, runtime: Runtime) -> None:
        self.state = state
        self.runtime = runtime
        self._columns: WeakValueDictionary[object, RowColumns] = WeakValueDictionary()
        # What each takes; those whose terms can't be compared with others are here as well.
        self._counted: dict[ref[RowColumns], int] = {}
        # How much memory all of them take.
        self.nbytes = 0

    def get(
        self,
        profile: Profile,
        filters: Sequence[tuple[int, Term]],
        scores: Sequence[tuple[int, Term]],
    ) -> RowColumns:
        """Return one that is up to date; NotKeptError if it can't be kept."""
        key = (profile.scheduler_name, tuple(filters), tuple(scores))
        try:
            known = self._columns.get(key)
        except TypeError:
            # A term that is no value can't be compared with others.
            made = RowColumns(self.state, self.runtime, profile, filters, scores)
            self.measure(made)
            return made
        if known is not None and not known.is_lost:
            # One that can't catch up is lost from then on.
            with suppress(NotKeptError):
                known.catch_up(profile, None)
                return known
        made = self._columns[key] = RowColumns(self.state, self.runtime, profile, filters, scores)
        self.measure(made)
        return made

    def measure(self, columns: RowColumns) -> None:
        """Count what some columns take now."""
        known = ref(columns)
        before = self._counted.get(known)
        if before is None:
            known, before = ref(columns, self._went), 0
        self._counted[known] = now = size_of(columns)
        self.nbytes += now - before

    def _went(self, columns: ref[RowColumns]) -> None:
        self.nbytes -= self._counted.pop(columns)

    def clear(self) -> None:
        """Share nothing any more with those that are there."""
        self._columns.clear()
