"""Which pods, coming or leaving elsewhere, may change what plugins say of parked ones.

Plugins see pods elsewhere as counts only (`Profile.helped_by_counts`), and what they counted when
they judged is taken down. As long as no pod has come or left that one of these counts may count,
they say the same of every node; so a pod that needs to be near another one is judged again when
such a one comes, and not whenever any pod does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.state.counts.concerned import doors_of
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from k8s_scheduler.core.state.counts.questions import SelectedPods, TermHolders
from k8s_scheduler.core.state.news.pod_news import Door, PodNews

# A group that counts more than this is judged whenever a pod comes or leaves.
_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class Interest:
    """The pods that plugins counted: behind some doors, or that hold terms of their own."""

    doors: tuple[Door, ...]
    terms: bool

    def is_met_by(self, news: PodNews) -> bool:
        """Return whether one of the pods that came or left may have been counted."""
        if news.is_any or (self.terms and news.hold_terms):
            return True
        known = news.doors
        return any(door in known for door in self.doors)

    def joined(self, other: "Interest") -> "Interest | None":
        """Return what both take an interest in; None if that is too much."""
        return _bounded((*self.doors, *other.doors), terms=self.terms or other.terms)


def interest_of(reads: Reads) -> Interest | None:
    """Return what plugins counted, or asked for to count it; None if that is too much to tell."""
    counters = dict.fromkeys(
        (*(reads.obtained or ()), *reads.counters, *(counter for counter, _ in reads.presences))
    )
    doors = tuple(door for counter in counters for door in _doors(counter))
    terms = any(isinstance(counter.counted, TermHolders) for counter in counters)
    return _bounded(doors, terms=terms)


def _bounded(doors: tuple[Door, ...], *, terms: bool) -> Interest | None:
    distinct = tuple(dict.fromkeys(doors))
    return None if len(distinct) > _MOST else Interest(distinct, terms)


def _doors(counter: PodCounter) -> Iterator[Door]:
    counted = counter.counted
    if isinstance(counted, SelectedPods):
        yield from doors_of(counted)
    elif not isinstance(counted, TermHolders):
        for selection, _ in counted.selections:
            yield from doors_of(SelectedPods((selection,), with_terminating=True))
