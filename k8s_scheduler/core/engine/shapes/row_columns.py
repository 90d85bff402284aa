"""What filters and scores say that look at each row on its own: kept row by row.

When facts of a row that they read change, that row is judged again; if only pods came or went,
only by what pods change. A plugin does not have to say what it depends on: its view takes down
whatever it reads, also while catching up. Shapes to which plugins say the same before any row is
looked at share one of these; what one of them caught up, all have.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.engine.shapes.validity import Surroundings
from k8s_scheduler.core.framework import points
from k8s_scheduler.core.framework.evaluation.normalizing import normalized
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.plugin import Same, Skip, Term
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import Profile, ScoreStep
from k8s_scheduler.core.framework.views.reads import NarrowRead, Reads
from k8s_scheduler.core.state.amounts.names import is_amount, resources_of
from k8s_scheduler.core.state.news.facts import LIVELY, NODE, OBJECTS, FactLog
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow

Column = npt.NDArray[np.int64]
AnyColumn = npt.NDArray[Any]
# Less than any total, also when two of them are added.
NEVER: Final = -(2**61)
# The code of a row that holds no node.
ABSENT: Final = -1
# Up to so many rows are looked up one by one; as many verdicts are remembered.
_FEW: Final = 8
_REMEMBERED: Final = 4096
# So much of the table changed that judging all of it again is cheaper, and at least so many rows.
_REBUILD_SHARE: Final = 4
_REBUILD_ROWS: Final = 64
_CALM: Final = ~(LIVELY | OBJECTS)


# From which position of the log of facts, the rows and facts noted since, and all these facts.
CaughtUp: TypeAlias = tuple[int, list[int], list[int], int]


def caught_up(log: FactLog, cursor: int) -> CaughtUp:
    """Return what was noted since; NotKeptError if that is forgotten."""
    since = log.since(cursor)
    if since is None:
        raise NotKeptError("log")
    rows, facts = since
    seen = 0
    for fact in facts:
        seen |= fact
    return cursor, rows, facts, seen


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
        """See whether it is as lively as ever."""
        lively = bool(self.reads.facts & LIVELY)
        if self.is_lively is None:
            self.is_lively = lively
        elif lively and not self.is_lively:
            raise NotKeptError("lively")


class RowPart:
    """The codes of row filters, and the sums of row scores, of all rows."""

    def __init__(
        self,
        state: Tables,
        runtime: Runtime,
        profile: Profile,
        filters: Sequence[tuple[int, Term]],
        scores: Sequence[tuple[int, Term]],
    ) -> None:
        """Judge all rows; NotKeptError if that can't be kept.

        `filters` and `scores` are places in the profile, with what was said at PreFilter and
        PreScore.
        """
        self._state = state
        self._runtime = runtime
        self._filters = filters
        self._filter_reads = [Reads() for _ in filters]
        # What the log of facts had said when this was last right; and whether it can't be any more.
        self._cursor = state.facts.position
        self._is_lost = False
        self._surroundings = Surroundings(state)
        # Grows when anything was judged. Rows that have become feasible, or are not any longer.
        self.version = 0
        self.flips = FactLog()
        # By code: the position of the filter that gave it. And the first filter that pods change.
        self._stages: dict[int, int] = {}
        self._lively_from = 0
        rows = state.nodes.row_count
        self.codes: npt.NDArray[np.int32] = np.full(rows, ABSENT, dtype=np.int32)
        # The sum of the weighted scores; NEVER where a filter rejects. `_calm` is the part of it
        # that only nodes change.
        self.base: Column = np.full(rows, NEVER, dtype=np.int64)
        self._calm: Column = np.zeros(rows, dtype=np.int64)
        self._constants: dict[int, int] = {}
        self._scores: list[_Score] = []
        self._raw_scores: list[_Score] = []
        # Those of the former that pods change; and the columns of all that pods change.
        self._lively: list[_Score] = []
        self._lively_columns: list[AnyColumn] = []
        # What was said of rows with certain amounts, where it follows from amounts of a few
        # resources alone: the code, the weighted sum of the scores that pods change, and each of
        # these. None where it does not. And of which resources.
        self._said: dict[object, tuple[int, int, tuple[int, ...]]] | None = None
        self._said_of: tuple[str, ...] = ()
        self._news = -1
        # Whether a plugin was asked since its reads were last looked at.
        self._has_judged = True
        # The facts that concern rows.
        self._facts = NODE
        self._watch: Watch | None = None
        for index, term in scores:
            self._add_score(profile, index, term)
        # Whether some scores depend on which rows are feasible.
        self.normalizes = bool(self._raw_scores)
        self._judge(profile, state.nodes.present_rows(), start=0, anew=True)
        self._learn()

    def _add_score(self, profile: Profile, index: int, term: Term) -> None:
        if isinstance(term, Skip):
            return
        step = profile.scores[index]
        if isinstance(term, Same):
            self._constants[index] = term.score * step.weight
            return
        scores = self._scores if step.normalize is None else self._raw_scores
        scores.append(_Score(index, step, term, len(self.codes)))

    # Catching up

    def catch_up(self, profile: Profile, watch: Watch | None) -> CaughtUp:
        """Judge again what changed; NotKeptError if that would be nearly everything."""
        if self._is_lost:
            raise NotKeptError("rows")
        try:
            return self._follow(profile, watch)
        except Exception:
            # Some of it may have been taken over, some not.
            self._is_lost = True
            raise

    def give_up(self) -> None:
        """Let nobody go by this any more."""
        self._is_lost = True

    @property
    def is_lost(self) -> bool:
        """Whether nobody may go by this any more."""
        return self._is_lost

    def _follow(self, profile: Profile, watch: Watch | None) -> CaughtUp:
        found = caught_up(self._state.facts, self._cursor)
        start, rows, facts, seen = found
        self._cursor = start + len(rows)
        if not self._surroundings.are_same(seen):
            raise NotKeptError("inputs")
        wanted = self._facts
        if self._state.nodes.row_count > len(self.codes):
            self._grow()
        if not seen & wanted:
            return found
        self._watch = watch
        if len(rows) == 1 and self._said is not None and not seen & _CALM and rows[0] >= 0:
            # A pod came or went since the last decision, as it mostly is.
            self.version += 1
            self._repeat(profile, rows, self._said)
        else:
            self._judge_changed(profile, *_sorted(rows, facts, wanted))
        if self._has_judged:
            self._learn()
        return found

    def _judge_changed(
        self, profile: Profile, touched: dict[int, None], renewed: dict[int, None]
    ) -> None:
        """Judge rows on which pods came or went, and those whose nodes changed themselves."""
        if not (touched or renewed):
            return
        if len(touched) + len(renewed) > max(_REBUILD_ROWS, len(self.codes) // _REBUILD_SHARE):
            raise NotKeptError("many_rows")
        self.version += 1
        if renewed:
            others = [row for row in touched if row not in renewed]
            self._judge_and_compare(profile, others, list(renewed))
        elif self._said is not None and len(touched) <= _FEW:
            self._repeat(profile, list(touched), self._said)
        else:
            self._judge_and_compare(profile, list(touched), [])

    def _judge_and_compare(self, profile: Profile, touched: list[int], renewed: list[int]) -> None:
        """Judge rows again, and note which have become feasible or are not any longer."""
        base = self.base
        changed = touched + renewed
        before = [base[row] != NEVER for row in changed]
        if renewed:
            self._judge_anew(profile, renewed)
        if touched:
            self._judge_again(profile, touched)
        for row, was in zip(changed, before, strict=True):
            if (base[row] != NEVER) != was:
                self.flips.note(row, 0)

    # Judging

    def _judge_anew(self, profile: Profile, rows: list[int]) -> None:
        """Judge rows of which anything may have changed; some may hold no node any more."""
        self._has_judged = True
        nodes = self._state.nodes
        is_there = [nodes.node_at(NodeRow(row)) is not None for row in rows]
        there = [row for row, there in zip(rows, is_there, strict=True) if there]
        if len(there) < len(rows):
            gone = [row for row, there in zip(rows, is_there, strict=True) if not there]
            self.codes[gone] = ABSENT
            self.base[gone] = NEVER
        if there:
            self._judge(profile, np.array(there, dtype=np.int64), start=0, anew=True)

    def _judge_again(self, profile: Profile, rows: list[int]) -> None:
        """Judge rows on which pods came or went."""
        start, stages = self._lively_from, self._stages
        codes = self.codes.take(rows)
        if np.count_nonzero(codes):
            # What is rejected by something that pods don't change stays so; so does what is no
            # node.
            rows = [
                row
                for row, code in zip(rows, codes.tolist(), strict=True)
                if not code or (code != ABSENT and stages[code] >= start)
            ]
        if rows:
            self._judge(profile, np.array(rows, dtype=np.int64), start=start, anew=False)
            self._has_judged = True

    # What was said before of a row that looks the same

    def _repeat(
        self,
        profile: Profile,
        rows: list[int],
        said: dict[object, tuple[int, int, tuple[int, ...]]],
    ) -> None:
        """Take over what was said of rows with the same amounts; judge the others, and remember."""
        amounts, codes, base = self._state.nodes.amounts, self.codes, self.base
        others: list[int] = []
        resources = self._said_of
        for row in rows:
            known = int(codes[row])
            if known and (known == ABSENT or self._stages[known] < self._lively_from):
                # Pods don't change that.
                continue
            found = said.get(amounts.key(NodeRow(row), resources))
            if found is None or (known and not found[0]):
                # The latter: what only nodes change was never worked out.
                others.append(row)
                continue
            code, total, scores = found
            if code:
                if not known:
                    base[row] = NEVER
                    self.flips.note(row, 0)
                codes[row] = code
            else:
                base[row] = int(self._calm[row]) + total
                for column, value in zip(self._lively_columns, scores, strict=True):
                    column[row] = value
        if others:
            self._judge_and_compare(profile, others, [])
            self._remember(others, said)

    def _remember(
        self, rows: list[int], said: dict[object, tuple[int, int, tuple[int, ...]]]
    ) -> None:
        if len(said) >= _REMEMBERED:
            said.clear()
        amounts = self._state.nodes.amounts
        for row in rows:
            values = tuple(int(column[row]) for column in self._lively_columns)
            weights = (score.weight for score in self._lively)
            # Those that are normalised come last, and are not part of the sum.
            total = sum(w * value for w, value in zip(weights, values, strict=False))
            said[amounts.key(NodeRow(row), self._said_of)] = int(self.codes[row]), total, values

    def _judge(self, profile: Profile, rows: Column, *, start: int, anew: bool) -> None:
        passed: npt.NDArray[np.intp] | None = None
        left = rows
        for position in range(start, len(self._filters)):
            found = self._filter(profile, position, left)
            if not np.count_nonzero(found):
                continue
            self._stages.update(dict.fromkeys(found.tolist(), position))
            if passed is None:
                codes = found.copy()
                passed = np.flatnonzero(found == 0)
            else:
                codes[passed] = found
                passed = passed[found == 0]
            left = rows.take(passed)
            if not len(left):
                break
        places = _places(rows)
        if passed is None:
            self.codes[places] = 0
        else:
            self.codes[places] = codes
        scored_before = self.base[places] != NEVER if not anew else None
        if passed is not None:
            self.base[rows[codes != 0]] = NEVER
        if scored_before is None:
            self._score(profile, left, anew=True)
            return
        if passed is not None:
            scored_before = scored_before.take(passed)
        if np.count_nonzero(scored_before) == len(scored_before):
            self._score(profile, left, anew=False)
        else:
            self._score(profile, left[~scored_before], anew=True)
            self._score(profile, left[scored_before], anew=False)

    def _filter(self, profile: Profile, position: int, rows: Column) -> Column:
        place, term = self._filters[position]
        step = profile.filters[place]
        if self._watch is not None:
            self._watch.asked(points.FILTER, step.name, len(rows))
        reads = self._filter_reads[position]
        return self._runtime.filter(step, term, rows, reads=reads)

    def _score(self, profile: Profile, rows: Column, *, anew: bool) -> None:
        """Score rows that passed; only by what pods change, unless they are scored anew."""
        if not len(rows):
            return
        places = _places(rows)
        for score in self._raw_scores:
            if anew or score.is_lively:
                step = profile.scores[score.index]
                self._ask(step.name, len(rows))
                found = self._runtime.raw_score(step, score.term, rows, score.reads)
                score.column[places] = found
                score.check()
        if anew:
            self._calm[places] = sum(self._constants.values())
        total = self._calm[places]
        for score in self._scores:
            if not anew and not score.is_lively:
                continue
            step = profile.scores[score.index]
            self._ask(step.name, len(rows))
            found = self._runtime.score(step, score.term, rows, score.reads)
            score.column[places] = found
            score.check()
            if step.weight != 1:
                found = found * step.weight
            if not score.is_lively:
                self._calm[places] += found
                total = self._calm[places] if total.base is self._calm else total + found
            else:
                total = total + found
        self.base[places] = total

    def _ask(self, plugin: str, rows: int) -> None:
        if self._watch is not None:
            self._watch.asked(points.SCORE, plugin, rows)

    # What it depends on

    def _learn(self) -> None:
        """Look at what was read, if there is anything new in it; refuse what can't be followed."""
        if not self._has_judged:
            return
        self._has_judged = False
        scores = [score.reads for score in (*self._scores, *self._raw_scores)]
        news = sum(reads.news for reads in (*self._filter_reads, *scores))
        if news == self._news:
            return
        self._news = news
        self._lively_from = len(self._filters)
        for position, reads in enumerate(self._filter_reads):
            if reads.facts & LIVELY:
                self._lively_from = position
                break
        self._lively = [score for score in self._scores if score.is_lively]
        lively = [*self._lively, *(score for score in self._raw_scores if score.is_lively)]
        self._lively_columns = [score.column for score in lively]
        repeated = (
            *self._filter_reads[self._lively_from :],
            *(score.reads for score in lively),
        )
        self._follow_amounts([read for reads in repeated for read in reads.narrow])
        every = (*self._filter_reads, *scores)
        for reads in every:
            if reads.counters or reads.presences or reads.wide_facts:
                raise NotKeptError("wide")
            self._facts |= reads.facts
            self._surroundings.see(reads)

    def _follow_amounts(self, reads: Sequence[NarrowRead]) -> None:
        """Find out whether all that pods change follows from amounts of a few resources."""
        columns = [read for read in reads if isinstance(read, str) and is_amount(read)]
        resources = resources_of(columns) if len(columns) == len(reads) else None
        self._said = None if not resources else {}
        self._said_of = resources or ()

    def _grow(self) -> None:
        """Make room for rows that are new."""
        more = self._state.nodes.row_count - len(self.codes)
        self.codes = np.concatenate([self.codes, np.full(more, ABSENT, dtype=np.int32)])
        self.base = np.concatenate([self.base, np.full(more, NEVER, dtype=np.int64)])
        nothing = np.zeros(more, dtype=np.int64)
        self._calm = np.concatenate([self._calm, nothing])
        for score in (*self._scores, *self._raw_scores):
            score.column = np.concatenate([score.column, nothing.astype(score.column.dtype)])
        # Columns are others now: what is to be written to is looked up anew.
        self._news = -1
        self._has_judged = True
        self._learn()

    # Answers

    def normalized(self, profile: Profile, feasible: Column) -> Iterator[tuple[int, Column]]:
        """Yield the scores of feasible rows that are normalised, by place among the scores."""
        if not len(feasible):
            return
        for score in self._raw_scores:
            step = profile.scores[score.index]
            raw: Column = score.column.take(feasible)
            yield score.index, normalized(step, raw) * step.weight

    def parts(self, profile: Profile, feasible: Column) -> Iterator[tuple[int, Column]]:
        """Yield every score of the feasible rows, weighted, by its place among the scores."""
        for index, constant in self._constants.items():
            yield index, np.full(len(feasible), constant, dtype=np.int64)
        for score in self._scores:
            yield score.index, score.column.take(feasible).astype(np.int64) * score.weight
        yield from self.normalized(profile, feasible)

    @property
    def terms(self) -> Iterator[Term]:
        """What it was made from, as plugins said it at PreFilter and PreScore."""
        yield from (term for _, term in self._filters)
        yield from (score.term for score in (*self._scores, *self._raw_scores))


def _sorted(
    rows: list[int], facts: list[int], wanted: int
) -> tuple[dict[int, None], dict[int, None]]:
    """Return the rows on which pods came or went, and those whose nodes changed themselves.

    Dicts stand for ordered sets.
    """
    touched: dict[int, None] = {}
    renewed: dict[int, None] = {}
    for row, fact in zip(rows, facts, strict=True):
        if row >= 0 and fact & wanted:
            (renewed if fact & _CALM else touched)[row] = None
    return touched, renewed


def _places(rows: Column) -> Column | slice:
    """Return the rows as an index; a single one as a slice, which numpy takes much faster."""
    if len(rows) == 1:
        row = int(rows[0])
        return slice(row, row + 1)
    return rows
