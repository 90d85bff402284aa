"""Rows that pass as they are, but not with the pods that were promised room there.

A node takes a pod only if it does with and without the promised pods that count. What an evaluation
keeps is without; this is what is said with them, kept beside it and caught up alike: of filters
that look at each row on its own, row by row, of those asked by group in `counted_in`. Nothing of it
is written into what is kept, which other pods share to which other promises count.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from k8s_scheduler.core.engine.nominated import Excepting
from k8s_scheduler.core.engine.shapes.counted_in import CountedIn
from k8s_scheduler.core.engine.shapes.newcomer import Newcomer
from k8s_scheduler.core.engine.shapes.row_columns import caught_up
from k8s_scheduler.core.engine.shapes.row_scores import Column
from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.engine.shapes.validity import ClusterReads
from k8s_scheduler.core.framework.evaluation.judging_rows import Together
from k8s_scheduler.core.framework.evaluation.runtime import Nominated, Runtime
from k8s_scheduler.core.framework.evaluation.trial import Trial, counting_steps
from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.views.base import Codes, Mask
from k8s_scheduler.core.framework.views.pod_view import Questions
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.delta import PlacedPod
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow

# Decisions that are made from scratch before it is tried again to keep what can't be kept.
_PATIENCE: Final = 64


class Withheld:
    """What filters say of rows with promised pods, for one evaluation."""

    def __init__(
        self,
        state: Tables,
        runtime: Runtime,
        questions: Questions,
        row_terms: Mapping[str, Term],
        *,
        groups: bool,
    ) -> None:
        """Take the terms of filters that look at each row; and whether others ask by group."""
        self._state = state
        self._runtime = runtime
        self._row_terms = row_terms
        self._newcomer = Newcomer(state, runtime, questions)
        self._counted = CountedIn(state, runtime, questions) if groups else None
        self._patience = 0
        self._start_over()

    def _start_over(self) -> None:
        self._cursor = self._state.facts.position
        # What was handed in, without and with its exception; and by row who was promised room.
        self._everybody: Nominated | None = None
        self._excepted: NodeRow | None = None
        self._pods: dict[NodeRow, Sequence[PlacedPod]] = {}
        self._reads = Reads()
        self._cluster_reads = ClusterReads(self._state)
        # By row: what row filters say; and what all filters say, 0 where all let the row pass.
        size = self._state.nodes.row_count
        self._row_codes: Column = np.zeros(size, dtype=np.int64)
        self.codes: Column = self._row_codes.copy()
        # Where that is not 0; None if nowhere.
        self.mask: Mask | None = None
        # Whether what groups say is not in these.
        self._is_lazy = False

    # Catching up

    def catch_up(
        self,
        profile: Profile,
        queued: QueuedPod,
        group_terms: Mapping[str, Term],
        nominated: Nominated,
        *,
        lazily: bool,
    ) -> bool:
        """Judge again what changed; return whether `codes` is another array now.

        `group_terms` are the evaluation's. What filters asked by group say is left out if that is
        to be done `lazily`: see `like` and `settle`. NotKeptError if what is said can't be kept.
        """
        if self._patience:
            self._patience -= 1
            raise NotKeptError("promises")
        try:
            return self._follow(profile, queued, group_terms, nominated, lazily=lazily)
        except Exception as error:
            self._give_up(error)
            raise

    def _give_up(self, error: Exception) -> None:
        """Forget everything: some may have been taken over, some not."""
        self._start_over()
        if isinstance(error, NotKeptError):
            self._patience = _PATIENCE

    def _follow(
        self,
        profile: Profile,
        queued: QueuedPod,
        group_terms: Mapping[str, Term],
        nominated: Nominated,
        *,
        lazily: bool,
    ) -> bool:
        noted = self._notes()
        touched = self._touched(noted[0])
        is_other = not self._is_same(nominated)
        if is_other:
            touched.update(dict.fromkeys(self._take(nominated)))
        if touched:
            self._judge(profile, queued, [row for row in touched if row in self._pods])
        counted = self._counted
        has_changed = bool(touched)
        if counted is not None:
            terms, pods = group_terms, self._pods
            has_changed |= counted.catch_up(
                profile, queued, terms, pods, is_other=is_other, noted=noted
            )
            if not lazily:
                has_changed |= counted.settle(profile, queued, pods)
        if not has_changed and self._is_lazy is lazily:
            return False
        self._is_lazy = lazily
        return self._add_up()

    def _add_up(self) -> bool:
        """Put together what filters say; return whether it is something else than before."""
        codes = self._row_codes.copy()
        if self._counted is not None and not self._is_lazy:
            self._counted.write_to(codes)
        if np.array_equal(codes, self.codes):
            return False
        self.codes = codes
        self.mask = codes != 0 if np.count_nonzero(codes) else None
        return True

    # What was left out, if that was to be done lazily

    def like(self, profile: Profile, queued: QueuedPod, row: NodeRow) -> Column | None:
        """Return the rows that groups keep from the pod as they do this one; None if they don't.

        Row filters let it pass.
        """
        if self._counted is None or row not in self._pods:
            return None
        try:
            return self._counted.like(profile, queued, self._pods, row)
        except Exception as error:
            self._give_up(error)
            raise

    def settle(self, profile: Profile, queued: QueuedPod) -> None:
        """Find out about all rows."""
        if self._counted is not None:
            try:
                self._counted.settle(profile, queued, self._pods)
            except Exception as error:
                self._give_up(error)
                raise
        self._is_lazy = False
        self._add_up()

    def _notes(self) -> tuple[list[int], list[int], int]:
        """Return the rows and facts noted since, and all these facts; forget what may be wrong."""
        try:
            start, rows, facts, seen = caught_up(self._state.facts, self._cursor)
        except NotKeptError:
            self._start_over()
            return [], [], -1
        self._cursor = start + len(rows)
        if not self._cluster_reads.are_same(seen):
            self._start_over()
        missing = self._state.nodes.row_count - len(self._row_codes)
        if missing > 0:
            more = np.zeros(missing, dtype=np.int64)
            self._row_codes = np.concatenate([self._row_codes, more])
            self.codes = np.concatenate([self.codes, more])
        return rows, facts, seen

    def _touched(self, rows: list[int]) -> dict[NodeRow, None]:
        """Return those of the rows that have promised pods. A dict stands for an ordered set."""
        pods = self._pods
        return {NodeRow(row): None for row in rows if row in pods}

    # Promises

    def _is_same(self, nominated: Nominated) -> bool:
        if isinstance(nominated, Excepting):
            return False
        return nominated is self._everybody and self._excepted is None

    def _take(self, nominated: Nominated) -> list[NodeRow]:
        """Take other promises; return the rows where they are others."""
        before = self._excepted
        everybody, self._excepted = nominated, None
        if isinstance(nominated, Excepting):
            everybody, self._excepted = nominated.everybody, nominated.row
        pods = self._pods
        if everybody is self._everybody:
            changed = [row for row in (before, self._excepted) if row is not None]
        else:
            changed = [row for row, placed in nominated.items() if pods.get(row) is not placed]
            changed += [row for row in pods if row not in nominated]
        for row in changed:
            if row in nominated:
                pods[row] = nominated[row]
            else:
                pods.pop(row, None)
                self._row_codes[row] = 0
        self._everybody = everybody
        return changed

    # Judging

    def _judge(self, profile: Profile, queued: QueuedPod, rows: list[NodeRow]) -> None:
        """Ask row filters about rows with their promised pods."""
        if not rows:
            return
        if counting_steps(profile, self._row_terms):
            found = self._try(profile, queued, rows)
        else:
            promised = self._runtime.promised
            deltas = [promised.difference(row, self._pods[row]) for row in rows]
            together = Together(deltas)
            found = together.judge(self._runtime, profile, self._row_terms, self._reads)
        self._row_codes[rows] = found
        reads = self._reads
        if reads.counters or reads.presences or reads.wide_facts:
            raise NotKeptError("promises")
        self._cluster_reads.see(reads)

    def _try(self, profile: Profile, queued: QueuedPod, rows: list[NodeRow]) -> Codes:
        """Judge rows one by one: some plugin counts the promised pods in its term."""
        terms = self._newcomer.terms(profile, queued, self._row_terms)
        codes: Codes = np.zeros(len(rows), dtype=np.int64)
        for place, row in enumerate(rows):
            delta = self._state.delta(row)
            trial = Trial(self._runtime, profile, dict(terms), delta, self._reads)
            trial.add(*self._pods[row])
            codes[place] = trial.judge()
        return codes
