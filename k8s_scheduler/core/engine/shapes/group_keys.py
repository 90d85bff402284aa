"""What tells rows apart, of all that plugins read of them."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.framework.views.reads import NarrowRead
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from k8s_scheduler.core.state.news.facts import fact_of
from k8s_scheduler.core.state.protocols import Tables

Values = npt.NDArray[np.int64]


@dataclass(slots=True)
class Limits:
    """Where grouping ends; tests make them small."""

    # A topology with as many domains at most is told apart by its domains, others by their counts.
    few_domains: int = 32
    groups: int = 512
    # For so many ways to reject groups it is known what is left.
    choices: int = 64


LIMITS: Final = Limits()


class Key:
    """One thing that plugins read of rows."""

    __slots__ = (
        "_read",
        "_state",
        "counter",
        "cursor",
        "facts",
        "goes_by_count",
        "name",
        "stands_alone",
        "topology",
    )

    def __init__(self, read: NarrowRead, state: Tables) -> None:
        self._read = read
        self._state = state
        self.counter: PodCounter | None = None
        self.topology: str | None = None
        self.goes_by_count = False
        self.cursor = 0
        # Whether each domain is a single node; None if that has to be found out.
        self.stands_alone: bool | None = None
        # Counts in few domains are told apart as the domains are.
        self.name: NarrowRead = read
        if isinstance(read, str):
            if read.endswith("/"):
                # Of so many columns that they were not named.
                raise NotKeptError("many_columns")
            if read == "name":
                # Every node has its own.
                raise NotKeptError("many_groups")
            self.facts = fact_of(read)
            return
        self.counter, self.topology = read
        self.facts = 0
        if self.topology is None:
            self.goes_by_count = True
        else:
            self.facts = fact_of("label/")
            self.goes_by_count = self._domain_count() > LIMITS.few_domains
            if not self.goes_by_count:
                self.name = f"label/{self.topology}"

    def _domain_count(self) -> int:
        ids = self._labels()[self._state.nodes.present_rows()]
        return int(np.count_nonzero(np.bincount(ids + 1)))

    def _labels(self) -> Values:
        found: Values = self._state.nodes.labels.column(self.topology or "")
        return found

    def values(self, rows: Values) -> Values:
        """Return what tells the rows apart; no negative numbers below -1."""
        read = self._read
        if isinstance(read, str):
            return self._column(read)[rows]
        counter, topology = read
        if topology is None:
            return counter.by_row[rows]
        ids = self._labels()[rows]
        # An absent label finds the last place, where nothing is counted.
        return counter.by_domain(topology)[ids] if self.goes_by_count else ids

    def count_at(self, row: int) -> int:
        """Return the count that tells a row apart."""
        counter, topology = self.counter, self.topology
        if counter is None:
            raise ValueError(f"{self.name} is no count")
        if topology is None:
            return counter.count_at(row)
        domain = self._state.nodes.labels.id_at(row, topology)
        return int(counter.by_domain(topology).item(domain))

    def _column(self, name: str) -> Values:
        family, _, key = name.partition("/")
        if family == "label":
            found: Values = self._state.nodes.labels.column(key)
            return found
        if family == "has_label":
            present: Values = (self._state.nodes.labels.column(key) >= 0).astype(np.int64)
            return present
        return self._state.nodes.column(name).astype(np.int64)

    def catch_up(self) -> list[int] | None:
        """Return the rows whose value may have changed since last asked; None if any may have."""
        counter = self.counter
        if counter is None:
            return []
        rows = counter.rows_since(self.cursor)
        if rows is None:
            self.cursor = counter.version
            return None
        # There is one for each version.
        self.cursor += len(rows)
        if not rows or self.topology is None:
            return rows
        labels = self._labels()
        if self.stands_alone is None:
            sizes = np.bincount(labels[self._state.nodes.present_rows()] + 1)[1:]
            self.stands_alone = bool(sizes.max(initial=0) <= 1)
        if self.stands_alone:
            return rows
        near: list[int] = list(rows)
        for domain in dict.fromkeys(labels[rows].tolist()):
            if domain >= 0:
                near += np.flatnonzero(labels == domain).tolist()
        return near


class GivenKey:
    """Something else that tells rows apart: a number of each, which the caller looks after."""

    __slots__ = ("_by_row",)

    facts: Final = 0
    counter: Final = None
    goes_by_count: Final = False

    def __init__(self, by_row: Values) -> None:
        self._by_row = by_row

    def values(self, rows: Values) -> Values:
        """Return what tells the rows apart."""
        return self._by_row[rows]
