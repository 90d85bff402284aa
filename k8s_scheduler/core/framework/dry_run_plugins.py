"""What filters may offer so that pods can be tried on a row, or taken off it, in thought.

`add_pod` and `remove_pod` are PreFilter's extensions: what the term would be with one pod more or
less on the one row in view. Plugins whose terms count pods need them; terms are never changed in
place. All the rest is for preemption's dry runs: it answers for many pods at once what a filter
would say with each of them back on the row.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

from k8s_scheduler.core.framework.departed import Departed, Quota
from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.state.counts.pod_counter import Crowd


@runtime_checkable
class CountingPlugin(Protocol):
    """A filter whose term counts pods."""

    def add_pod(self, term: Term, pod: PodView, rows: RowsView) -> Term:
        """Return the term with one more pod on the row in view."""

    def remove_pod(self, term: Term, pod: PodView, rows: RowsView) -> Term:
        """Return the term with one pod less on the row in view."""


@runtime_checkable
class BarringPlugin(CountingPlugin, Protocol):
    """A filter whose term counts pods, and to which a pod on a row is all right or is not."""

    def remove_pods(self, term: Term, pods: Crowd, rows: RowsView) -> tuple[Term, Sequence[int]]:
        """Return the term without all these pods on the row in view, and which of them bar it.

        Where the row passes without any of them, it is rejected as soon as one is back that bars
        it, whatever else is there; and of the others any number may come back. Pods are named by
        their places, in ascending order.
        """


@runtime_checkable
class SiftingPlugin(Protocol):
    """A filter that looks at each pod of a row alone: at ports, at disks, or whether it counts."""

    def quotas(self, term: Term, pods: Departed, rows: RowsView) -> Iterable[Quota] | None:
        """Return of which pods, none of which is on the row in view, only so many may come.

        The row passes as it is. It is rejected as soon as there is one more of a quota than may be,
        whatever else is there; and of pods in no quota any number may come. None where that can't
        be said.
        """


@runtime_checkable
class ThinningPlugin(CountingPlugin, Protocol):
    """A filter whose term counts pods, and that can take away many at once."""

    def counts(self, term: Term) -> bool:
        """Return whether any pod that comes or goes could make it another term."""

    def without(self, term: Term, pods: Departed, rows: RowsView) -> Term:
        """Return the term with all these pods less on the row in view."""


# Sums of larger amounts may wrap around where filters see them: then `room` can't be said.
LARGEST_EXACT: Final = 2**61


@runtime_checkable
class RoomyPlugin(Protocol):
    """A filter that goes by nothing but sums of what pods take, and by each sum alone."""

    def room(self, term: Term, rows: RowsView) -> Sequence[Mapping[str, int]] | None:
        """Return for each row how much more pods may take before it is rejected, by resource.

        Only for rows that pass. `pods` is how many more there may be; a resource that is not named
        may be taken at will. None where that can't be said exactly.
        """
