"""What a plugin may read. A closed set: what is not declared can't be seen.

`Row` names columns of the node table; a name that ends in `/` stands for the whole family.
`Object` names a kind of objects. The kinds of all enabled plugins decide which watches run.

What a plugin reads also says what can change its answer: parked pods are woken by
`events_that_help`. No plugin lists events, so none can be forgotten.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.resources import PODS
from k8s_scheduler.core.state.amounts.names import POD_COUNT, Families
from k8s_scheduler.core.state.news.changes import Change
from k8s_scheduler.core.state.news.facts import PODS as COUNTED_PODS
from k8s_scheduler.core.state.news.facts import entry_of, fact_of

_COUNTS = 1000


@dataclass(frozen=True, slots=True)
class Row:
    """A column of facts about each node."""

    column: str


@dataclass(frozen=True, slots=True)
class Object:
    """Objects of one kind."""

    kind: Kind


Dependency: TypeAlias = Row | Object


class Declarations:
    """What one plugin declared, ready to be asked for every read."""

    __slots__ = ("_columns", "_families", "_kinds", "all_labels", "counts", "listed")

    def __init__(self, listed: Iterable[Dependency]) -> None:
        self.listed = tuple(listed)
        self._columns, self._families, self._kinds = _sorted_out(self.listed)
        # Counts by topology keys that were found to be covered: what is in here need not be asked
        # for. Pods may name any keys, so a bounded number.
        self.counts: dict[tuple[tuple[str, ...], str | None], None] = {}
        # Whether the labels of every key may be read.
        self.all_labels = "label/" in self._families

    def cover(self, column: str) -> bool:
        return column in self._columns or column[: column.find("/") + 1] in self._families

    def cover_block(self, families: Families, resources: tuple[str, ...]) -> bool:
        """Return whether two columns of each of these resources may be read."""
        declared = self._families
        for family in families.shown:
            if family not in declared:
                return all(map(self.cover, families.columns(resources)))
        # Whatever the resources are; `pods` alone has a column that is in none of the families.
        return PODS not in resources or self.cover(POD_COUNT)

    def cover_count(self, columns: tuple[str, ...], key: str | None) -> bool:
        """Return whether pods may be counted that go by these columns, near by a topology key."""
        count = (columns, key)
        if count in self.counts:
            return True
        covered = all(map(self.cover, columns)) and (key is None or self.cover(f"label/{key}"))
        if covered:
            if len(self.counts) >= _COUNTS:
                self.counts.clear()
            self.counts[count] = None
        return covered

    def cover_kind(self, kind: Kind) -> bool:
        """Return whether objects of a kind may be read."""
        return kind in self._kinds


@lru_cache(maxsize=256)
def _sorted_out(
    listed: tuple[Dependency, ...],
) -> tuple[frozenset[str], frozenset[str], frozenset[Kind]]:
    """Return the columns, the families of columns and the kinds; a plugin lists the same always."""
    columns = [d.column for d in listed if isinstance(d, Row)]
    # Who may read a label may also ask whether it is there.
    columns += [f"has_{column}" for column in columns if column.startswith("label/")]
    families = frozenset(column for column in columns if column.endswith("/"))
    return frozenset(columns), families, frozenset(d.kind for d in listed if isinstance(d, Object))


def events_that_help(dependencies: Iterable[Dependency]) -> Change:
    """Return the events on rows that may change the mind of a plugin that reads these."""
    return _events_that_help(tuple(dependencies))


@lru_cache(maxsize=256)
def _events_that_help(dependencies: tuple[Dependency, ...]) -> Change:
    found = Change.NODE_ADD
    for dependency in dependencies:
        if isinstance(dependency, Row):
            events = entry_of(dependency.column).events
            if events is None:
                raise KeyError(dependency.column)
            found |= events
    return found


def sees_pods_as_counts(dependencies: Iterable[Dependency]) -> bool:
    """Return whether a plugin looks at pods, and sees nothing of them but counts."""
    columns = [each.column for each in dependencies if isinstance(each, Row)]
    pods = [column for column in columns if column.startswith("pods/")]
    return bool(pods) and all(fact_of(column) == COUNTED_PODS for column in pods)


def looks_elsewhere(dependency: Dependency) -> bool:
    """Return whether a verdict on one row may depend, through this, on what is elsewhere."""
    return isinstance(dependency, Object) or dependency.column.startswith("pods/")
