"""What every view of rows has: what it shows, what it may show, and what was read through it."""

from collections.abc import Iterable
from typing import Final, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.state.columns import AnyColumn
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from k8s_scheduler.core.state.delta import Delta, Deltas
from k8s_scheduler.core.state.interning import Interner, Value
from k8s_scheduler.core.state.news.facts import LABELS, PODS
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]


# Up to so many numbers Python's own functions are faster than numpy's.
FEW: Final = 16


# By counter and topology key: the domains of the rows in view. By counter, key and True: that all
# domains were looked at.
Settled: TypeAlias = dict[
    tuple[PodCounter, str | None] | tuple[PodCounter, str | None, bool], Counts
]


class UndeclaredReadError(Exception):
    """A plugin reached for something it did not declare."""


def extremes(scores: Scores) -> tuple[int, int]:
    if len(scores) <= FEW:
        each = scores.tolist()
        return min(each), max(each)
    return int(np.minimum.reduce(scores)), int(np.maximum.reduce(scores))


class Reader(Protocol):
    """A plugin at a point."""

    @property
    def name(self) -> str: ...

    @property
    def declared(self) -> Declarations: ...


class ViewBase:
    """Some rows, for one plugin."""

    __slots__ = (
        "_declared",
        "_delta",
        "_is_whole",
        "_multiplicity",
        "_reader",
        "_reads",
        "_row_keys",
        "_rows",
        "_settled",
        "_state",
        "_verdicts",
        "_wide",
    )

    def __init__(
        self,
        state: Tables,
        rows: Rows,
        reader: Reader,
        verdicts: VerdictTable,
        *,
        delta: Delta | Deltas | None = None,
        reads: Reads | None = None,
    ) -> None:
        """Show some rows; what is read of them is taken down in `reads`."""
        self._reads = reads
        # Whether whatever is worked out is not about each row on its own.
        self._wide = False
        # How many equal nodes each row stands for; None if each is itself.
        self._multiplicity: Counts | None = None
        self._state = state
        self._rows = rows
        self._reader = reader
        self._declared = reader.declared
        self._verdicts = verdicts
        self._delta = delta
        # What does not change any more; None if anything may.
        self._settled: Settled | None = None
        self._row_keys: dict[NodeRow, None] | None = None
        # All nodes in view, on the first rows and without a gap: columns are shown uncopied.
        self._is_whole = rows is state.nodes.all_rows

    def __len__(self) -> int:
        if self._wide and self._reads is not None:
            self._reads.looked_at_rows = True
        return len(self._rows)

    def seen_as(self, *, wide: bool = False, multiplicity: Counts | None = None) -> Self:
        """Say what the rows stand for: all together for all nodes, or each for several."""
        self._wide, self._multiplicity = wide, multiplicity
        return self

    def settle(self) -> None:
        """Take the labels of the rows in view for settled, and what was read once for taken down.

        For a caller that reads through one view again and again, and drops it when a node comes,
        goes or gets other labels.
        """
        if not self._is_whole:
            self._settled = {}

    # What was read

    def _took_column(self, name: str, *, wide: bool = False) -> None:
        if self._reads is not None:
            self._reads.column(name, wide=wide or self._wide)

    def _took_everywhere(self, column: str) -> None:
        if self._reads is not None:
            self._reads.everywhere(column)

    def _took_label_everywhere(self, key: str) -> None:
        """Check and take down; at a glance, what is declared and taken down for all keys."""
        if not self._declared.all_labels:
            self._check(f"label/{key}")
        reads = self._reads
        if reads is not None and not reads.wide_facts & LABELS:
            reads.everywhere(f"label/{key}")

    def _took_counter(self, counter: PodCounter, key: str | None, *, wide: bool = False) -> None:
        """Take down a count; where no caller follows the counter, what it is made of."""
        if self._reads is None:
            return
        self._reads.counter(counter, key, wide=wide or self._wide)
        if self._wide:
            self._reads.wide_facts |= PODS | LABELS
        elif key is not None and not wide:
            self._reads.facts |= LABELS

    def _took_scalar(self, name: str, value: int) -> int:
        if self._reads is not None:
            self._reads.scalar(name, value)
        return value

    def _sets(self, column: str, interned: Interner[Value]) -> Iterable[tuple[int, Value]]:
        """Return the interned sets; only those in view, if rows are judged one by one."""
        self._check(column)
        if self._reads is None:
            return interned.items()
        if self._wide:
            self._reads.everywhere(column)
            return interned.items()
        self._reads.column(column, wide=False)
        in_view = dict.fromkeys(self._cut(self._state.nodes.column(column)).tolist())
        return [(set_id, interned[set_id]) for set_id in in_view]

    # Where the one row in view is

    def own_domain(self, key: str) -> int:
        """Return the id of the domain that the one row in view is in; negative if in none.

        It names the domain for a plugin that counts a pod there: what comes out must not depend on
        which domain it is, only on what is read of it, and whether there is one. So that is what
        is taken down, and the row may stand for others.
        """
        self._check(f"label/{key}")
        self._took_column(f"has_label/{key}")
        return self._state.nodes.labels.id_at(int(self._rows[0]), key)

    def in_domain(self, key: str, domain: int) -> Mask:
        """Return which rows are in a domain; of a single row it is taken down as `own_domain`."""
        self._check(f"label/{key}")
        one = len(self._rows) == 1
        self._took_column(f"has_label/{key}" if one else f"label/{key}")
        found: Mask = self._cut(self._state.nodes.labels.column(key)) == domain
        return found

    # Declarations

    def _check(self, name: str) -> None:
        if not self._declared.cover(name):
            raise UndeclaredReadError(
                f"plugin {self._reader.name} reads column {name!r} "
                "without declaring it in depends_on"
            )

    def _check_counter(self, counter: PodCounter, key: str | None = None) -> None:
        if not self._declared.cover_count(counter.columns, key):
            for name in counter.columns:
                self._check(name)
            self._check(f"label/{key}")

    # Most reads repeat those of the decision before: one look-up finds them declared, another one
    # taken down.

    def _check_narrow(self, counter: PodCounter, key: str | None) -> None:
        """Check and take down a count of the rows in view, or near them."""
        if (counter.columns, key) not in self._declared.counts:
            self._check_counter(counter, key)
        reads = self._reads
        if reads is not None and (self._wide or (counter, key) not in reads.narrow):
            self._took_counter(counter, key)

    def _check_wide(self, counter: PodCounter, key: str | None) -> None:
        """Check and take down a count of all rows."""
        if (counter.columns, key) not in self._declared.counts:
            self._check_counter(counter, key)
        reads = self._reads
        if reads is not None and (self._wide or counter not in reads.wide_counters):
            self._took_counter(counter, key, wide=True)

    def _check_kind(self, kind: Kind) -> None:
        if not self._declared.cover_kind(kind):
            raise UndeclaredReadError(
                f"plugin {self._reader.name} reads {kind.name} objects "
                "without declaring it in depends_on"
            )

    def _row_set(self) -> dict[NodeRow, None]:
        """Return the rows in view, to find one among them at a glance."""
        if self._row_keys is None:
            self._row_keys = dict.fromkeys(self._rows.tolist())
        return self._row_keys

    def _cut(self, column: AnyColumn) -> AnyColumn:
        """Return the part of a column that is in view, read-only."""
        if not self._is_whole:
            return column[self._rows]
        part = column[: len(self._rows)]
        part.flags.writeable = False
        return part
