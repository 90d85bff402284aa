"""Scores of plugins that look at each row on its own, kept row by row, and their sum.

Scores that only nodes change are summed up once; those that pods change, the *lively* ones, are
asked for again and added. Scores that are normalised over the feasible rows are kept raw, and are
no part of the sum.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.framework import points
from k8s_scheduler.core.framework.evaluation.normalizing import normalized
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.plugin import Same, Skip, Term
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import Profile, ScoreStep
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.state.news.facts import LIVELY

Column = npt.NDArray[np.int64]
AnyColumn = npt.NDArray[Any]


class _Score:
    """One plugin's scores: from 0 to 100, or raw where they are normalised later."""

    __slots__ = ("column", "index", "is_lively", "reads", "term", "weight")

    def __init__(self, index: int, step: ScoreStep, term: Term, rows: int) -> None:
        self.index = index
        self.term = term
        self.weight = step.weight
        self.reads = Reads()
        self.column: AnyColumn = np.zeros(
            rows, dtype=np.uint8 if step.normalize is None else np.int64
        )
        # Whether pods that come and go change it; not known before it was first asked.
        self.is_lively: bool | None = None

    def check(self) -> None:
        lively = bool(self.reads.facts & LIVELY)
        if self.is_lively is None:
            self.is_lively = lively
        elif lively and not self.is_lively:
            raise NotKeptError("lively")


class RowScores:
    """The scores of all rows."""

    def __init__(
        self, runtime: Runtime, profile: Profile, scores: Sequence[tuple[int, Term]], rows: int
    ) -> None:
        """Take places in the profile, with what was said at PreScore."""
        self._runtime = runtime
        # By place: what a plugin says of every row, weighted.
        self._constants: dict[int, int] = {}
        self._summed: list[_Score] = []
        self._raw: list[_Score] = []
        # The part of the sum that only nodes change.
        self.calm: Column = np.zeros(rows, dtype=np.int64)
        # What pods change: the scores that are summed up, and the columns of all.
        self._lively: list[_Score] = []
        self.lively_columns: list[AnyColumn] = []
        for index, term in scores:
            step = profile.scores[index]
            if isinstance(term, Same):
                self._constants[index] = term.score * step.weight
            elif not isinstance(term, Skip):
                kind = self._summed if step.normalize is None else self._raw
                kind.append(_Score(index, step, term, rows))
        # Whether some scores depend on which rows are feasible.
        self.normalizes = bool(self._raw)

    def score(self, profile: Profile, rows: Column, watch: Watch | None, *, anew: bool) -> Column:
        """Score rows that passed, and return the sums.

        Only by what pods change, unless the rows are scored anew.
        """
        places = places_of(rows)
        for score in self._raw:
            if anew or score.is_lively:
                step = self._step(profile, score, rows, watch)
                score.column[places] = self._runtime.raw_score(step, score.term, rows, score.reads)
                score.check()
        if anew:
            self.calm[places] = sum(self._constants.values())
        total = self.calm[places]
        for score in self._summed:
            if not anew and not score.is_lively:
                continue
            step = self._step(profile, score, rows, watch)
            found = self._runtime.score(step, score.term, rows, score.reads)
            score.column[places] = found
            score.check()
            if step.weight != 1:
                found = found * step.weight
            if not score.is_lively:
                self.calm[places] += found
                total = self.calm[places] if total.base is self.calm else total + found
            else:
                total = total + found
        return total

    @staticmethod
    def _step(profile: Profile, score: _Score, rows: Column, watch: Watch | None) -> ScoreStep:
        step = profile.scores[score.index]
        if watch is not None:
            watch.asked(points.SCORE, step.name, len(rows))
        return step

    def take_lively(self, row: int, scores: tuple[int, ...]) -> None:
        """Take over what pods change of a row."""
        for column, value in zip(self.lively_columns, scores, strict=True):
            column[row] = value

    def lively_at(self, row: int) -> tuple[int, tuple[int, ...]]:
        """Return the sum of what pods change of a row, and each part of it."""
        values = tuple(int(column[row]) for column in self.lively_columns)
        # Those that are normalised come last, and are no part of the sum.
        parts = zip(self._lively, values, strict=False)
        return sum(score.weight * value for score, value in parts), values

    def sort(self) -> list[Reads]:
        """Find out which are lively; return what these have read."""
        self._lively = [score for score in self._summed if score.is_lively]
        lively = [*self._lively, *(score for score in self._raw if score.is_lively)]
        self.lively_columns = [score.column for score in lively]
        return [score.reads for score in lively]

    @property
    def reads(self) -> list[Reads]:
        return [score.reads for score in (*self._summed, *self._raw)]

    @property
    def terms(self) -> Iterator[Term]:
        """What plugins said at PreScore."""
        yield from (score.term for score in (*self._summed, *self._raw))

    def grow(self, more: int) -> None:
        nothing = np.zeros(more, dtype=np.int64)
        self.calm = np.concatenate([self.calm, nothing])
        for score in (*self._summed, *self._raw):
            score.column = np.concatenate([score.column, nothing.astype(score.column.dtype)])

    def normalized(self, profile: Profile, feasible: Column) -> Iterator[tuple[int, Column]]:
        """Yield the scores of feasible rows that are normalised, by place among the scores."""
        if not len(feasible):
            return
        for score in self._raw:
            step = profile.scores[score.index]
            raw: Column = score.column.take(feasible)
            yield score.index, normalized(step, raw) * step.weight

    def parts(self, profile: Profile, feasible: Column) -> Iterator[tuple[int, Column]]:
        """Yield every score of the feasible rows, weighted, by its place among the scores."""
        for index, constant in self._constants.items():
            yield index, np.full(len(feasible), constant, dtype=np.int64)
        for score in self._summed:
            yield score.index, score.column.take(feasible).astype(np.int64) * score.weight
        yield from self.normalized(profile, feasible)


def places_of(rows: Column) -> Column | slice:
    """Return rows as an index; a single one as a slice, which numpy takes much faster."""
    if len(rows) == 1:
        row = int(rows[0])
        return slice(row, row + 1)
    return rows
