"""What filters and scores say that look at each row on its own: kept row by row.

When facts of a row that they read change, that row is judged again; if only pods came or went,
only by what pods change. A plugin does not have to say what it depends on: its view takes down
whatever it reads, also while catching up. Shapes to which plugins say the same before any row is
looked at share one of these; what one of them caught up, all have.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.engine.shapes.row_scores import Column, RowScores, places_of
from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.engine.shapes.validity import ClusterReads
from k8s_scheduler.core.framework import points
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.views.reads import NarrowRead, Reads
from k8s_scheduler.core.state.amounts.names import is_amount, resources_of
from k8s_scheduler.core.state.news.facts import LIVELY, NODE, OBJECTS, FactLog
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow

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


class RowColumns:
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
        self._cluster_reads = ClusterReads(state)
        # Grows when anything was judged. Rows that have become feasible, or are not any longer.
        self.version = 0
        self.flips = FactLog()
        # By code: the position of the filter that gave it. And the first filter that pods change.
        self._stages: dict[int, int] = {}
        self._lively_from = 0
        rows = state.nodes.row_count
        self.codes: npt.NDArray[np.int32] = np.full(rows, ABSENT, dtype=np.int32)
        # The sum of the weighted scores; NEVER where a filter rejects.
        self.base: Column = np.full(rows, NEVER, dtype=np.int64)
        self.scores = RowScores(runtime, profile, scores, rows)
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
        self._judge(profile, state.nodes.present_rows(), start=0, anew=True)
        self._learn()

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
        """Make every evaluation that shares this one look for another."""
        self._is_lost = True

    @property
    def is_lost(self) -> bool:
        """Whether no evaluation may go by this any more."""
        return self._is_lost

    def _follow(self, profile: Profile, watch: Watch | None) -> CaughtUp:
        found = caught_up(self._state.facts, self._cursor)
        start, rows, facts, seen = found
        self._cursor = start + len(rows)
        if not self._cluster_reads.are_same(seen):
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
                base[row] = int(self.scores.calm[row]) + total
                self.scores.take_lively(row, scores)
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
            key = amounts.key(NodeRow(row), self._said_of)
            said[key] = int(self.codes[row]), *self.scores.lively_at(row)

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
        places = places_of(rows)
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
        if len(rows):
            self.base[places_of(rows)] = self.scores.score(profile, rows, self._watch, anew=anew)

    # What it depends on

    def _learn(self) -> None:
        """Look at what was read, if there is anything new in it; refuse what can't be followed."""
        if not self._has_judged:
            return
        self._has_judged = False
        every = (*self._filter_reads, *self.scores.reads)
        news = sum(reads.news for reads in every)
        if news == self._news:
            return
        self._news = news
        self._lively_from = len(self._filters)
        for position, reads in enumerate(self._filter_reads):
            if reads.facts & LIVELY:
                self._lively_from = position
                break
        repeated = (*self._filter_reads[self._lively_from :], *self.scores.sort())
        self._follow_amounts([read for reads in repeated for read in reads.narrow])
        for reads in every:
            if reads.counters or reads.presences or reads.wide_facts:
                raise NotKeptError("wide")
            self._facts |= reads.facts
            self._cluster_reads.see(reads)

    def _follow_amounts(self, reads: Sequence[NarrowRead]) -> None:
        """Find out whether all that pods change follows from amounts of a few resources."""
        columns = [read for read in reads if isinstance(read, str) and is_amount(read)]
        resources = resources_of(columns) if len(columns) == len(reads) else None
        self._said = None if not resources else {}
        self._said_of = resources or ()

    def _grow(self) -> None:
        more = self._state.nodes.row_count - len(self.codes)
        self.codes = np.concatenate([self.codes, np.full(more, ABSENT, dtype=np.int32)])
        self.base = np.concatenate([self.base, np.full(more, NEVER, dtype=np.int64)])
        self.scores.grow(more)
        # Columns are others now: what is to be written to is looked up anew.
        self._news = -1
        self._has_judged = True
        self._learn()

    # Answers

    @property
    def terms(self) -> Iterator[Term]:
        """What it was made from, as plugins said it at PreFilter and PreScore."""
        yield from (term for _, term in self._filters)
        yield from self.scores.terms


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
