"""The counts of placed pods for one question: on each row, and in each domain of a topology.

A count is made once, by a pass over all placed pods, and kept from then on: a pod that comes or
goes changes it by one, a node that gets another label takes its pods to another domain. So a
decision reads counts and never counts.

There is one `PodCounter` for each distinct question (`questions`), and a caller may keep it. One
that was not asked for long is no longer kept up to date, and is counted anew when it is asked again
(`live_counters`). An old count is never read: each read first brings the counter up to date.
"""

from array import array
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.state.counts.count_log import CountLog
from k8s_scheduler.core.state.counts.questions import Counted, SelectedPods, TermHolders

if TYPE_CHECKING:
    from k8s_scheduler.core.state.counts.live_counters import Counters

Counts = npt.NDArray[np.int64]

# By so many topology keys counts are added up at the same time, and so many that no node has are
# known to have been asked for.
_DOMAINS: Final = 64
_ABSENT: Final = 64
# So few holders are looked for one by one.
_FEW_HOLDERS: Final = 64
_NOTHING: Final = np.zeros(0, dtype=np.int64)


class _Cells:
    """Counts by some index, to be read as a whole and changed one by one.

    Changes go through a view of the same memory that is twice as fast for single numbers.
    """

    __slots__ = ("cells", "counts")

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self.cells = _cells(counts)

    def reserve(self, size: int) -> None:
        if size > len(self.counts):
            # A little more at a time: there are many of these.
            grown = np.zeros(size + size // 8, dtype=np.int64)
            grown[: len(self.counts)] = self.counts
            self.counts, self.cells = grown, _cells(grown)


def _cells(counts: Counts) -> memoryview:
    # numpy's stubs call an array a buffer from Python 3.12 on.
    buffer: Any = counts
    return memoryview(buffer)


class _Domains(_Cells):
    """The counts by domain of one topology key, and the sum of these."""

    __slots__ = ("total",)

    def __init__(self, counts: Counts) -> None:
        super().__init__(counts)
        self.total = int(counts.sum())

    def put(self, index: int, difference: int) -> None:
        if index >= len(self.cells):
            self.reserve(index + 1)
        self.cells[index] += difference
        self.total += difference


class PodCounter:
    """The counts for one question. Every read asks first whether it is up to date."""

    # Rows that changed which are remembered at least.
    LOGGED: Final = 1024
    # After so many changes without a question it is cheaper to count anew.
    IDLE: Final = 256

    __slots__ = (
        "__weakref__",
        "_absent",
        "_domains",
        "_few",
        "_first",
        "_home",
        "_log",
        "_rows",
        "asked",
        "columns",
        "counted",
        "counts_terminating",
        "cursor",
        "idle",
        "is_live",
        "notes",
        "times",
    )

    def __init__(self, counted: Counted, home: "Counters") -> None:
        self.counted = counted
        # What is counted here, in the words of declarations.
        self.columns: tuple[str, ...] = ("pods/labels",)
        # A terminating pod still holds its terms.
        self.counts_terminating = True
        # Where it reads which pods have come and gone, up to `cursor`, and `times` says how much
        # each counts; None if it is told.
        self.notes: CountLog | None = None
        if isinstance(counted, TermHolders):
            self.columns, self.notes = ("pods/terms",), home.held_log
        elif isinstance(counted, SelectedPods) and not counted.with_terminating:
            self.columns, self.counts_terminating = ("pods/labels", "pods/terminating"), False
        self.cursor = 0
        self.times = _NOTHING
        # The holders that count, if they are few; empty if they are not, None if that is to be
        # found out.
        self._few: frozenset[int] | None = None
        self.is_live = False
        # When it was last asked, by the home's clock; and how many changes there were since.
        self.asked = 0
        self.idle = 0
        self._home = home
        self._rows = _Cells(_NOTHING)
        self._domains: dict[str, _Domains] = {}
        # Keys that no node had when they were asked for.
        self._absent: dict[str, None] = {}
        # The rows of the changes since version `_first`, one for each.
        self._log = array("q")
        self._first = 0

    # Reading

    @property
    def by_row(self) -> Counts:
        """The pods on each row there is, nodes or not. Do not write to it, do not keep it."""
        if not self.is_live or self.asked != self._home.clock:
            self._ask()
        capacity = self._home.labels.capacity
        if len(self._rows.counts) < capacity:
            self._rows.reserve(capacity)
        return self._rows.counts

    def by_domain(self, key: str) -> Counts:
        """Return the pods on nodes with each value of a label, by its id.

        One more place at the end is always 0: there the id of an absent label points to. Do not
        write to it, do not keep it.
        """
        self._ask()
        domains = self._domains_of(key)
        size = self._home.labels.value_count + 1
        if domains is None:
            return np.zeros(size, dtype=np.int64)
        domains.reserve(size)
        return domains.counts[:size]

    def near(self, key: str, ids: Counts) -> Counts:
        """Return the pods in the domains of these ids, as an array of its own; 0 for a negative."""
        if not self.is_live or self.asked != self._home.clock:
            self._ask()
        domains = self._domains.get(key)
        if domains is None:
            domains = self._domains_of(key)
        if domains is None:
            return np.zeros(len(ids), dtype=np.int64)
        size = self._home.labels.value_count + 1
        if len(domains.counts) < size:
            domains.reserve(size)
        # The last place, where a negative id points to, is behind every domain's.
        return domains.counts[ids]

    def total(self, key: str) -> int:
        self._ask()
        domains = self._domains_of(key)
        return 0 if domains is None else domains.total

    @property
    def version(self) -> int:
        if not self.is_live or self.asked != self._home.clock:
            self._ask()
        return self._first + len(self._log)

    def count_at(self, row: int) -> int:
        if not self.is_live or self.asked != self._home.clock:
            self._ask()
        cells = self._rows.cells
        return cells[row] if row < len(cells) else 0

    def rows_since(self, cursor: int) -> list[int] | None:
        """Return the rows that changed after that version; None if that is not known any more.

        The counts that changed are those on these rows and in the domains that these rows are in.
        """
        if not self.is_live or self.asked != self._home.clock:
            self._ask()
        start = cursor - self._first
        return None if start < 0 else self._log[start:].tolist()

    def catch_up(self) -> None:
        self._ask()

    # Upkeep, by the home alone

    def fill(self, by_row: Counts) -> None:
        self._start_over(by_row)
        self.is_live = True

    def drop(self) -> None:
        self._start_over(_NOTHING)
        self.times = _NOTHING
        self.is_live = False

    def change(self, row: int, difference: int) -> None:
        if not self.is_live:
            return
        rows = self._rows
        if row >= len(rows.cells):
            rows.reserve(row + 1)
        rows.cells[row] += difference
        id_at = self._home.labels.id_at
        for key, domains in self._domains.items():
            domain = id_at(row, key)
            cells = domains.cells
            if 0 <= domain < len(cells):
                # What `put` does, for every pod that comes or goes.
                cells[domain] += difference
                domains.total += difference
            elif domain >= 0:
                domains.put(domain, difference)
        log = self._log
        log.append(row)
        if len(log) > 2 * self.LOGGED:
            self._shorten_log()
        self.idle += 1
        if self.idle > self.IDLE:
            self._rest()

    def _rest(self) -> None:
        """Be no longer kept up to date, unless this is the counter that was asked last."""
        if self.notes is None and self.asked != self._home.clock:
            self._home.retire(self)
        else:
            self.idle = 0

    def move(self, key: str, row: int, before: int, after: int) -> None:
        domains = self._domains.get(key)
        if domains is None:
            return
        count = self._rows.cells[row] if row < len(self._rows.cells) else 0
        if count and after >= 0:
            domains.put(after, count)
        if count and before >= 0:
            domains.put(before, -count)
        if before >= 0:
            # From now on the row does not say which domain changes on it have changed so far.
            if count or row in self._log:
                self._forget_log()
        elif count:
            self._log.append(row)
            self._shorten_log()

    def meet_key(self, key: str) -> None:
        if key in self._absent:
            del self._absent[key]
            self._home.unfollow(self, (key,))
            self._forget_log()

    def is_unconcerned(self, holders: Iterable[int] | None) -> bool:
        """Return whether pods of these holders certainly count nothing; None may be any."""
        if holders is None:
            return False
        if self._few is None:
            counted = np.flatnonzero(self.times)
            self._few = frozenset(counted.tolist()) if len(counted) <= _FEW_HOLDERS else frozenset()
        return bool(self._few) and self._few.isdisjoint(holders)

    def forget_few(self) -> None:
        self._few = None

    def start_over(self) -> None:
        self._start_over(self._rows.counts)

    @property
    def nbytes(self) -> int:
        domains = sum(each.counts.nbytes for each in self._domains.values())
        counted = self.counted
        return self._rows.counts.nbytes + self.times.nbytes + domains + counted.nbytes

    # Parts

    def _start_over(self, by_row: Counts) -> None:
        self._home.unfollow(self, (*self._domains, *self._absent))
        self._rows = _Cells(by_row)
        self._domains = {}
        self._absent = {}
        self._forget_log()

    def _ask(self) -> None:
        home = self._home
        if not self.is_live:
            home.revive(self)
        elif self.notes is not None and self.cursor != self.notes.position:
            home.catch_up(self)
        home.clock = self.asked = home.clock + 1
        self.idle = 0

    def _domains_of(self, key: str) -> _Domains | None:
        """Return the sums of a topology; None for a key that no node has had so far.

        Such a key has no column that would tell of changes: pods may name any.
        """
        found = self._domains.get(key)
        if found is None:
            column = self._home.labels.column(key)
            if not self._home.labels.has_column(key):
                if key not in self._absent:
                    if len(self._absent) >= _ABSENT:
                        self._start_over(self._rows.counts)
                    self._absent[key] = None
                    self._home.follow(self, key)
                return None
            if len(self._domains) >= _DOMAINS:
                self._start_over(self._rows.counts)
            counts = self._rows.counts
            rows = np.flatnonzero(counts)
            places = column[rows] + 1
            size = self._home.labels.value_count + 2
            # In floating point, which is exact for as many pods as there can be. In front of the
            # first domain is the place of those in none.
            sums = np.bincount(places, counts[rows], minlength=size)[1:]
            found = self._domains[key] = _Domains(sums.astype(np.int64))
            self._home.follow(self, key)
        return found

    def _shorten_log(self) -> None:
        log = self._log
        if len(log) > 2 * self.LOGGED:
            del log[: self.LOGGED]
            self._first += self.LOGGED

    def _forget_log(self) -> None:
        self._first += len(self._log) + 1
        del self._log[:]


class Crowd:
    """Placed pods, in some order, as counters see them. Void once one of them changes.

    A dry run that takes thousands of pods away asks once for all of them what a count loses.
    """

    __slots__ = ("_amounts", "holders", "label_sets", "terminating")

    def __init__(
        self,
        *,
        label_sets: Counts,
        holders: Counts,
        terminating: npt.NDArray[np.bool_],
        amounts: Callable[[PodCounter, "Crowd"], Counts],
    ) -> None:
        self.label_sets = label_sets
        self.holders = holders
        self.terminating = terminating
        self._amounts = amounts

    def __len__(self) -> int:
        return len(self.holders)

    def amounts(self, counter: PodCounter) -> Counts:
        return self._amounts(counter, self)
