"""What plugins get to see of the pods on nodes: host ports, affinity terms, and how many there are.

Pods elsewhere are seen as counts only, so that a change says which answers it may have changed.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.views.base import Counts, ViewBase
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.state.counts.pod_counter import Crowd, PodCounter
from k8s_scheduler.core.state.counts.questions import Counted
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.core.state.terms.picked_terms import PickedTerms


class PlacedPodsView(ViewBase):
    """The pods on some rows, for one plugin."""

    __slots__ = ()

    def port_users(self, protocol: str, port: int) -> Mapping[NodeRow, Mapping[str, int]]:
        """Return row -> address -> count of the pods that use a host port."""
        self._check("ports")
        self._took_column("ports")
        if self._delta is not None:
            return self._delta.port_users(protocol, port)
        users = self._state.nodes.ports.users(protocol, port)
        if not users or (self._is_whole and len(self._rows) == self._state.nodes.row_count):
            return users
        # Thousands of ports may be asked about, each with few users.
        shown = self._row_set()
        if len(users) < len(shown):
            return {row: users[row] for row in users if row in shown}
        return {row: users[row] for row in shown if row in users}

    def terms_picking(self, pod: PodView, namespace_labels: Mapping[str, str]) -> PickedTerms:
        """Return the terms of placed pods that pick a pod whose namespace has these labels."""
        self._check("pods/terms")
        held = self._state.pods.held_terms
        self._took_scalar("held_terms", held.version)
        return pod.picked_by(held, namespace_labels)

    # How many pods. A `Delta` does not show here.

    def counter(self, counted: Counted) -> PodCounter:
        """Return what counts these pods, from now on; it says something only to a view."""
        counter = self._state.pods.counters.get(counted)
        self._check_counter(counter)
        if self._reads is not None and self._reads.obtained is not None:
            self._reads.obtained[counter] = None
        return counter

    def count_here(self, counter: PodCounter) -> Counts:
        """Return how many pods are on each row. Do not write to it."""
        settled = self._settled
        if settled is None:
            self._check_narrow(counter, None)
        elif (counter, None) not in settled:
            self._check_narrow(counter, None)
            settled[counter, None] = self._rows
        return self._cut(counter.by_row)

    def count_near(self, counter: PodCounter, key: str) -> Counts:
        """Return how many pods are in each row's domain of a topology; 0 where it is in none."""
        settled = self._settled
        ids = None if settled is None else settled.get((counter, key))
        if ids is None:
            self._check_narrow(counter, key)
            ids = self._cut(self._state.nodes.labels.column(key))
            if settled is not None:
                settled[counter, key] = ids
        return counter.near(key, ids)

    def counted_of(self, counter: PodCounter, key: str, pods: Crowd) -> Counts:
        """Return how much each of some pods counts that are on the one row in view."""
        self._check_narrow(counter, key)
        return pods.amounts(counter)

    def count_everywhere(self, counter: PodCounter) -> Counts:
        """Return how many pods are on each node there is, in view or not."""
        self._check_wide(counter, None)
        return counter.by_row.take(self._state.nodes.present_rows())

    def count_by_domain(self, counter: PodCounter, key: str) -> Counts:
        """Return how many pods are in each domain there is, by the id of the label's value.

        One more place at the end is always 0, where absent labels point to. Do not write to it.
        """
        self._check_wide(counter, key)
        found = counter.by_domain(key)
        found.flags.writeable = False
        return found

    def count_in(self, counter: PodCounter, key: str, domains: npt.NDArray[np.int64]) -> Counts:
        """Return how many pods are in some domains, by the ids of the label's values."""
        settled = self._settled
        if settled is None:
            self._check_wide(counter, key)
        elif (counter, key, True) not in settled:
            self._check_wide(counter, key)
            settled[counter, key, True] = self._rows
        return counter.near(key, domains)

    def count_any(self, counter: PodCounter, key: str) -> bool:
        """Return whether a pod is in any domain of a topology. It seldom changes."""
        if (counter.columns, key) not in self._declared.counts:
            self._check_counter(counter, key)
        found = counter.total(key) > 0
        if self._reads is not None:
            self._reads.presence(counter, key, seen=found)
        return found

    def count_version(self, counter: PodCounter) -> int:
        """Return a number to keep what was worked out from counts with; it changes if they do."""
        self._check_wide(counter, None)
        return counter.version
