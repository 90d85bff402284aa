"""What a plugin has read: its view records it, so a plugin does not have to.

A read is *narrow* if it shows only the rows in view, each its own part; everything else is *wide*.
What was worked out from narrow reads alone is right for a row until that row's facts change; what
was worked out from wide ones is right until they change anywhere. Objects and counts of the
cluster are kept with the value seen: comparing it tells whether they changed.
"""

import enum
from typing import Any, TypeAlias

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from k8s_scheduler.core.state.news.facts import fact_of

# How an object, or a list of objects, was asked for: (what, kind, namespace, name). For `class`,
# the objects of a storage class, its name is in place of the namespace.
ObjectRead: TypeAlias = tuple[str, Kind, str, str]
# A column; or the pods that a counter counts on a row, or near it by a topology key.
NarrowRead: TypeAlias = str | tuple[PodCounter, str | None]


class NodeCount(enum.IntEnum):
    """What a plugin asked about how many nodes rows stand for."""

    ALL = 1
    EACH = 2


class Reads:
    """The reads of one plugin at one point; or of several, together."""

    __slots__ = (
        "counters",
        "counts_nodes",
        "facts",
        "looked_at_rows",
        "narrow",
        "news",
        "objects",
        "obtained",
        "presences",
        "scalars",
        "wide_counters",
        "wide_facts",
    )

    def __init__(self, *, keeps_obtained: bool = False) -> None:
        """Take nothing down yet; `keeps_obtained`: counters that were not read, too."""
        # Facts of the rows in view, and of all rows.
        self.facts = 0
        self.wide_facts = 0
        # Whether it was asked for how many nodes the rows in view stand, all of them or some.
        self.counts_nodes: NodeCount | None = None
        # Whether the rows in view were looked at, if only to count them.
        self.looked_at_rows = False
        # Grows with everything that was not read before.
        self.news = 0
        self.narrow: dict[NarrowRead, None] = {}
        # All counters, and those that were asked about more than the rows in view.
        self.counters: dict[PodCounter, None] = {}
        self.wide_counters: dict[PodCounter, None] = {}
        # Those that were asked for, whether they were asked about anything or not; None if that
        # is of no interest: a cache that keeps reads for long would keep these counters alive.
        self.obtained: dict[PodCounter, None] | None = {} if keeps_obtained else None
        # Whether a counter counts any pod near some node.
        self.presences: dict[tuple[PodCounter, str], bool] = {}
        self.objects: dict[ObjectRead, Any] = {}
        self.scalars: dict[str, int] = {}

    def column(self, name: str, *, wide: bool) -> None:
        if name in self.narrow and not wide:
            return
        self.looked_at_rows = True
        if wide:
            self.everywhere(name)
        else:
            self.news += 1
            self.facts |= fact_of(name)
            self.narrow[name] = None

    def everywhere(self, column: str) -> None:
        """Take down what was read of a column, of all rows, whichever are in view."""
        fact = fact_of(column)
        if not self.wide_facts & fact:
            self.news += 1
            self.wide_facts |= fact

    def counter(self, counter: PodCounter, key: str | None, *, wide: bool) -> None:
        """Take down what a counter says: of rows, or near them by a topology key."""
        if counter in self.wide_counters if wide else (counter, key) in self.narrow:
            return
        self.looked_at_rows = True
        self.news += 1
        self.counters[counter] = None
        if wide:
            self.wide_counters[counter] = None
        else:
            self.narrow[counter, key] = None

    def node_count(self, wanted: NodeCount) -> None:
        """Take down that a plugin counted the nodes in view."""
        self.looked_at_rows = True
        self.counts_nodes = max(wanted, self.counts_nodes or wanted)

    def presence(self, counter: PodCounter, key: str, *, seen: bool) -> None:
        """Take down whether a counter counts any pod in any domain of a topology."""
        if self.presences.get((counter, key)) is not seen:
            self.news += 1
            self.presences[counter, key] = seen

    def object(self, read: ObjectRead, seen: object) -> None:
        """Take down an object, or a list of them."""
        if read not in self.objects or self.objects[read] is not seen:
            self.news += 1
            self.objects[read] = seen

    def scalar(self, name: str, seen: int) -> None:
        """Take down a number that describes the cluster as a whole."""
        if self.scalars.get(name) != seen:
            self.news += 1
            self.scalars[name] = seen

    def include(self, other: "Reads") -> None:
        if other.counts_nodes is not None:
            self.node_count(other.counts_nodes)
        self.looked_at_rows = self.looked_at_rows or other.looked_at_rows
        self.facts |= other.facts
        self.wide_facts |= other.wide_facts
        self.narrow.update(other.narrow)
        self.counters.update(other.counters)
        self.wide_counters.update(other.wide_counters)
        self.presences.update(other.presences)
        self.objects.update(other.objects)
        self.scalars.update(other.scalars)
        self.news += other.news
