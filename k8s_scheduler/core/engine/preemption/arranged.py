"""The pods of rows in the order in which they may come back, for one dry run after the other.

Every preemption looks at the pods of all nodes in question, and one tenant may have put thousands
on one of them. Who is there, who is more important, what they take together and which of them
budgets protect is the same until a pod of the row or a budget changes: it is worked out once, and
for all pods that preempt.

Pods that are gone may be held here for a moment: `tidy` lets go of rows that no dry run has used
since.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

from k8s_scheduler.core.engine.preemption.disruption_budgets import Budgets, ListBudgets, importance
from k8s_scheduler.core.engine.preemption.work import terms_of
from k8s_scheduler.core.framework.departed import Departed
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.state.counts.pod_counter import Crowd
from k8s_scheduler.core.state.delta import Delta, PlacedPod
from k8s_scheduler.core.state.protocols import PlacedPods
from k8s_scheduler.core.state.rows import NodeRow

# So many pods are kept in order, of all rows.
MAX_PODS: Final = 1 << 16
# So many priorities of preempting pods are known for each row: each holds a part of its pods again.
MAX_PRIORITIES: Final = 4


class Lesser:
    """The pods of a row that a preempting pod may evict, the most important first."""

    __slots__ = (
        "_crowd",
        "_departed",
        "_divided",
        "_listed",
        "_state",
        "gone",
        "has_ports",
        "has_volumes",
        "namespaces",
        "pods",
        "terms",
    )

    def __init__(self, pods: Sequence[PlacedPod], gone: Delta, state: PlacedPods) -> None:
        """Take them in their order; `gone` is the row, as it is."""
        self._state = state
        self.pods = pods
        # How many affinity terms they hold.
        self.terms = terms_of([placed.pod for placed in pods])
        self.namespaces = tuple(dict.fromkeys([p.pod.metadata.namespace for p in pods]))
        gone.remove_all(pods)
        self.has_ports = any(placed.ports for placed in pods)
        self.has_volumes = any(placed.pod.spec.volumes for placed in pods)
        # The row without them.
        self.gone = gone
        self._departed: Departed | None = None
        self._crowd: Crowd | None = None
        self._listed: tuple[tuple[Any, ...], ...] | None = None
        self._divided: tuple[Sequence[PlacedPod], int] = (pods, 0)

    def crowd(self) -> Crowd:
        """Return them as counters see them."""
        if self._crowd is None:
            self._crowd = self._state.crowd(self.pods)
        return self._crowd

    def departed(self) -> Departed:
        """Return them as plugins see them."""
        if self._departed is None:
            views = tuple([PodView(placed.pod, placed.requests) for placed in self.pods])
            self._departed = Departed(views)
        return self._departed

    def divided(self, budgets: Budgets, listed: ListBudgets) -> tuple[Sequence[PlacedPod], int]:
        """Return all of them, those first whose leaving budgets forbid, and how many these are."""
        now = tuple([listed(namespace) for namespace in self.namespaces])
        before = self._listed
        if before is None or not all(map(_is, now, before)):
            if any(now):
                violating, harmless = budgets.divide(self.pods, listed)
                self._divided = (*violating, *harmless), len(violating)
            else:
                self._divided = self.pods, 0
            self._listed = now
        return self._divided


def _is(one: object, other: object) -> bool:
    return one is other


class _Row:
    """The pods of one row, in order."""

    __slots__ = ("_keys", "_known", "pods", "version")

    def __init__(self, pods: list[PlacedPod], version: int) -> None:
        self.pods = sorted(pods, key=lambda placed: importance(placed.pod))
        self.version = version
        self._keys = [-placed.priority for placed in self.pods]
        # By the place of the first one.
        self._known: dict[int, Lesser] = {}

    def below(self, priority: int, gone: Delta, state: PlacedPods) -> Lesser:
        start = bisect_right(self._keys, -priority)
        found = self._known.get(start)
        if found is None:
            if len(self._known) >= MAX_PRIORITIES:
                self._known.clear()
            found = self._known[start] = Lesser(self.pods[start:], gone, state)
        return found


class Arranged:
    """Rows whose pods are known in their order."""

    def __init__(self, state: PlacedPods) -> None:
        self._state = state
        # Those that protect these pods.
        self.budgets = Budgets()
        # In the order of their last use.
        self._rows: dict[NodeRow, _Row] = {}
        self._count = 0
        self._is_used = False

    def below(self, row: NodeRow, priority: int) -> Lesser:
        """Return the pods of a row that are less important than that."""
        self._is_used = True
        state, version = self._state, self._state.pods_version(row)
        known = self._rows.pop(row, None)
        if known is not None and known.version != version:
            self._count -= len(known.pods)
            known = None
        if known is None:
            known = _Row(state.pods_on(row), version)
            self._count += len(known.pods)
        self._rows[row] = known
        while self._count > MAX_PODS and len(self._rows) > 1:
            self._count -= len(self._rows.pop(next(iter(self._rows))).pods)
        return known.below(priority, state.delta(row), state)

    def tidy(self) -> None:
        """Forget everything unless a dry run has asked since the last call."""
        if not self._is_used:
            self.clear()
        self._is_used = False
        self.budgets.tidy()

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()
        self._count = 0
