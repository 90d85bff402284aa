"""What came of trying nodes for a kind of pod, for as long as trying again would give the same.

A search for room that is carried on in the next message, and the next pod of the same shape and
priority, ask of most nodes what was asked before. An answer stays until something changes that the
dry run has read: a fact of the row, a count of pods near it, an object, what a plugin prepared; for
victims also any pod of the row as such, and the budgets of their namespaces. Pods that are promised
room on the row are compared at each use. Nothing here is part of a checkpoint: a core that takes
one forgets all of it, as the core has that is restored from it.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.shapes.validity import ClusterReads, are_equal, are_present
from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.preemption import DryRunError, Victims
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.framework.shapes import ShapeKey
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from k8s_scheduler.core.state.delta import PlacedPod
from k8s_scheduler.core.state.news.facts import LABELS, NODE
from k8s_scheduler.core.state.protocols import PlacedPods
from k8s_scheduler.core.state.rows import NodeRow

Outcome: TypeAlias = Victims | Verdict | DryRunError
# What tells kinds of pods apart: profile, shape, priority.
Asked: TypeAlias = tuple[str, ShapeKey, int]

# Counts near a row are compared one by one up to this number of counters; of more, any change of
# one of them ends everything.
_NARROW: Final = 64
# A count that no dry run on the row has read.
_UNREAD: Final = -1
# What all outcomes together may take.
MAX_BYTES: Final = 32 * 1024 * 1024
# What was not asked for in so many is forgotten. Pods that wait are tried every five minutes.
_PERIOD_SECONDS: Final = 300.0
_PERIODS: Final = 2
# As measured: victims with what they are compared by, and what there is for each kind of pod.
_FOUND_BYTES: Final = 1024
_KIND_BYTES: Final = 16 * 1024


class _Found(NamedTuple):
    """Victims on a row, and what has to be the same for them to be the same."""

    victims: Victims
    pods_version: int
    budgets: tuple[tuple[str, tuple[Any, ...]], ...]


class Outcomes:
    """What came of the nodes for pods of one kind."""

    def __init__(self, state: PlacedPods) -> None:
        self._state = state
        # How often everything had to be forgotten.
        self.losses = 0
        self._terms: Mapping[str, Term] = {}
        self._start_over()

    def _start_over(self) -> None:
        self._cursor = self._state.facts.position
        # Terms hold ids of label values, which mean something else in another epoch.
        self._label_epoch = self._state.nodes.labels.epoch
        self._cluster_reads = ClusterReads(self._state)
        self._reads = Reads()
        self._versions: dict[PodCounter, int] = {}
        # By row: the number of a verdict, 0 for none.
        self._codes: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._verdicts: list[Verdict] = []
        self._numbers: dict[Verdict, int] = {}
        self._found: dict[NodeRow, _Found] = {}
        self._errors: dict[NodeRow, str] = {}
        # By row, of those that have any: the pods that were promised room there.
        self._promised: dict[NodeRow, tuple[Pod, ...]] = {}
        # By counter and topology key: what it said near each row.
        self._counts: dict[tuple[PodCounter, str | None], npt.NDArray[np.int64]] = {}

    @property
    def nbytes(self) -> int:
        arrays = self._codes.nbytes + sum(counts.nbytes for counts in self._counts.values())
        few = len(self._found) + len(self._errors) + len(self._promised)
        return arrays + few * _FOUND_BYTES + _KIND_BYTES

    # Catching up

    def catch_up(self, terms: Mapping[str, Term]) -> None:
        """Forget what may be otherwise by now; `terms` are those that filters have now."""
        notes = self._state.facts.since(self._cursor)
        is_renumbered = self._label_epoch != self._state.nodes.labels.epoch
        if notes is None or is_renumbered or not self._is_sound(terms, notes[1]):
            if len(self._codes):
                self.losses += 1
            self._start_over()
        else:
            self._cursor = self._state.facts.position
            self._forget(dict.fromkeys(notes[0]))
            for (counter, key), seen in self._counts.items():
                now = self._counts_near(counter, key, np.arange(len(seen)))
                changed = (seen != now) & (seen != _UNREAD)
                if np.count_nonzero(changed):
                    self._forget(np.flatnonzero(changed).tolist())
        # A copy: evaluations that are kept may put other terms into theirs.
        self._terms = dict(terms)

    def _is_sound(self, terms: Mapping[str, Term], facts: Sequence[int]) -> bool:
        """Return whether nothing has changed that concerns all rows."""
        if not len(self._codes):
            return True
        seen = 0
        for fact in dict.fromkeys(facts):
            seen |= fact
        wide = self._reads.wide_facts | (LABELS | NODE if self._versions else 0)
        return (
            not seen & wide
            and are_equal(self._terms, terms)
            and self._cluster_reads.are_same(seen)
            and are_present(self._reads.presences)
            and all(counter.version == version for counter, version in self._versions.items())
        )

    def _forget(self, rows: Iterable[int]) -> None:
        size = len(self._codes)
        there = [row for row in rows if 0 <= row < size]
        if not there:
            return
        self._codes[there] = 0
        for seen in self._counts.values():
            seen[there] = _UNREAD
        for row in there:
            self._drop(NodeRow(row))

    def _drop(self, row: NodeRow) -> None:
        self._found.pop(row, None)
        self._errors.pop(row, None)
        self._promised.pop(row, None)

    def forget_pods(self) -> None:
        """Let go of pods that may be gone; nodes that did not help as they are stay known."""
        self._forget(list(self._promised))
        self._found.clear()

    # Asking

    def recall(self, row: NodeRow, promised: Sequence[PlacedPod]) -> Outcome | None:
        """Return what came of a row; None if it has to be tried. Catch up first."""
        code = self._codes[row] if row < len(self._codes) else 0
        known: Outcome | None = None
        if code:
            known = self._verdicts[code - 1]
        elif row in self._errors:
            known = DryRunError(self._errors[row])
        elif row in self._found:
            known = self._victims_on(row, self._found[row])
        if known is None:
            return None
        before = self._promised.get(row, ())
        if len(before) != len(promised):
            return None
        same = all(placed.pod is pod for placed, pod in zip(promised, before, strict=True))
        return known if same else None

    def are_open(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which of the rows are not simply known not to help."""
        size = len(self._codes)
        found: npt.NDArray[np.bool_] = rows >= size
        found[~found] = self._codes[rows[~found]] == 0
        if self._promised:
            found |= np.isin(rows, list(self._promised))
        return found

    def refusals(
        self, rows: npt.NDArray[np.int64], promised: Container[NodeRow]
    ) -> dict[NodeRow, Verdict]:
        """Return those of the rows that are known not to help, where no pod is promised room."""
        there = rows[rows < len(self._codes)]
        codes = self._codes[there]
        known = there[codes > 0].tolist()
        verdicts, numbers = self._verdicts, codes[codes > 0].tolist()
        return {
            NodeRow(row): verdicts[number - 1]
            for row, number in zip(known, numbers, strict=True)
            if row not in promised and row not in self._promised
        }

    def _victims_on(self, row: NodeRow, found: _Found) -> Victims | None:
        objects = self._state.objects
        for namespace, listed in found.budgets:
            if objects.list(Kind.POD_DISRUPTION_BUDGET, namespace) is not listed:
                return None
        is_same = self._state.pods_version(row) == found.pods_version
        return found.victims if is_same else None

    # Remembering

    def remember(
        self,
        outcomes: Mapping[NodeRow, Outcome],
        promised: Mapping[NodeRow, Sequence[PlacedPod]],
        reads: Reads,
    ) -> None:
        """Take what came of rows, from what was read for it. Nothing may have changed since."""
        self._grow(self._state.nodes.row_count)
        self._heed(reads)
        for row, outcome in outcomes.items():
            self._codes[row] = 0
            self._drop(row)
            if isinstance(outcome, Verdict):
                self._codes[row] = self._number_of(outcome)
            elif isinstance(outcome, Victims):
                self._found[row] = self._with_inputs(row, outcome)
            else:
                self._errors[row] = str(outcome)
            if others := promised.get(row):
                self._promised[row] = tuple(placed.pod for placed in others)
        rows = np.array(list(outcomes), dtype=np.int64)
        for (counter, key), seen in self._counts.items():
            seen[rows] = self._counts_near(counter, key, rows)

    def _grow(self, size: int) -> None:
        missing = size - len(self._codes)
        if missing > 0:
            self._codes = np.concatenate((self._codes, np.zeros(missing, dtype=np.int32)))
            unread = np.full(missing, _UNREAD, dtype=np.int64)
            for read, seen in self._counts.items():
                self._counts[read] = np.concatenate((seen, unread))

    def _heed(self, reads: Reads) -> None:
        self._cluster_reads.see(reads)
        self._reads.wide_facts |= reads.wide_facts
        self._reads.presences.update(reads.presences)
        for counter in reads.wide_counters:
            self._versions[counter] = counter.version
        for read in reads.narrow:
            if isinstance(read, str) or read in self._counts:
                continue
            if len(self._counts) >= _NARROW:
                self._versions[read[0]] = read[0].version
            else:
                self._counts[read] = np.full(len(self._codes), _UNREAD, dtype=np.int64)

    def _counts_near(
        self, counter: PodCounter, key: str | None, rows: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        if key is None:
            return counter.by_row[rows]
        return counter.near(key, self._state.nodes.labels.column(key)[rows])

    def _number_of(self, verdict: Verdict) -> int:
        found = self._numbers.get(verdict)
        if found is None:
            self._verdicts.append(verdict)
            found = self._numbers[verdict] = len(self._verdicts)
        return found

    def _with_inputs(self, row: NodeRow, victims: Victims) -> _Found:
        objects = self._state.objects
        namespaces = self._state.namespaces_on(row)
        budgets = tuple((n, objects.list(Kind.POD_DISRUPTION_BUDGET, n)) for n in namespaces)
        return _Found(victims, self._state.pods_version(row), budgets)


class OutcomeMemory:
    """Outcomes by kind of pod; those that were not asked for longest go first.

    Kinds that were not asked for a while go, too: the pods may be gone, and one of them may have
    asked for thousands of things.
    """

    def __init__(self, state: PlacedPods, *, max_bytes: int = MAX_BYTES) -> None:
        self._state = state
        self._max_bytes = max_bytes
        # In the order of their last use.
        self._known: dict[Asked, Outcomes] = {}
        self._sizes: dict[Asked, int] = {}
        # In which period each was last asked for, and which is now.
        self._periods: dict[Asked, int] = {}
        self._period = 0
        self._next_period = 0.0
        # What all of them take, as known when each was last asked for.
        self.nbytes = 0

    def of(self, asked: Asked) -> Outcomes:
        """Return the outcomes of a kind, to be brought up to date by the caller."""
        last = next(reversed(self._known), None)
        if last is not None:
            # The only one that can have grown.
            self._measure(last)
        found = self._known.pop(asked, None) or Outcomes(self._state)
        self._known[asked] = found
        self._periods[asked] = self._period
        self._measure(asked)
        self._make_room(1)
        return found

    def limit(self, max_bytes: int) -> None:
        """Take no more memory than this from now on; nodes are tried again where it must be."""
        self._max_bytes = min(max_bytes, MAX_BYTES)
        self._make_room(0)

    def _make_room(self, count: int) -> None:
        """Drop those that were not asked for longest, but for so many."""
        while self.nbytes > self._max_bytes and len(self._known) > count:
            self._drop_oldest()

    def age(self, *, now: float) -> None:
        """Drop those that were not asked for a while: at each tick."""
        if now < self._next_period:
            return
        self._period += 1
        self._next_period = now + _PERIOD_SECONDS
        while self._known and self._periods[next(iter(self._known))] < self._period - _PERIODS:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        oldest = next(iter(self._known))
        del self._known[oldest], self._periods[oldest]
        self.nbytes -= self._sizes.pop(oldest)

    def _measure(self, asked: Asked) -> None:
        _, shape, _ = asked
        # The key, and the terms that were prepared from the same content.
        content = 2 * (len(shape.spec) + len(shape.labels)) + len(shape.partial)
        size = content + self._known[asked].nbytes
        self.nbytes += size - self._sizes.get(asked, 0)
        self._sizes[asked] = size

    def forget_pods(self) -> None:
        """Hold on to no pod that may be gone."""
        for outcomes in self._known.values():
            outcomes.forget_pods()

    def clear(self) -> None:
        self._known.clear()
        self._periods.clear()
        self._sizes.clear()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._known)
