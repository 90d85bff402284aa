"""One row with some pods more or less: what dry runs and promised pods are judged on."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from k8s_scheduler.core.framework.plugin import CountingPlugin, Term
from k8s_scheduler.core.framework.plugin_errors import blaming
from k8s_scheduler.core.framework.pod_view import PodView
from k8s_scheduler.core.framework.profile import FilterStep, Profile
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.framework.views import RowsView
from k8s_scheduler.core.state.delta import Delta, PlacedPod

if TYPE_CHECKING:
    from k8s_scheduler.core.framework.runtime import Runtime


class Trial:
    """One row with some pods more or less, as the filters would judge it."""

    def __init__(
        self, runtime: "Runtime", profile: Profile, terms: dict[str, Term], delta: Delta
    ) -> None:
        self._runtime = runtime
        self._profile = profile
        self._terms = terms
        self.delta = delta
        self._row = np.array([delta.row], dtype=np.int64)

    def add(self, *pods: PlacedPod) -> None:
        """Let pods be there."""
        for placed in pods:
            self.delta.add(placed)
            for step, plugin, term in _counting(self._profile, self._terms):
                with blaming(step.name, "AddPod"):
                    view = PodView(placed.pod, placed.requests)
                    self._terms[step.name] = plugin.add_pod(term, view, self._view(step))

    def remove(self, *pods: PlacedPod) -> None:
        """Let pods be gone."""
        for placed in pods:
            self.delta.remove(placed)
            for step, plugin, term in _counting(self._profile, self._terms):
                with blaming(step.name, "RemovePod"):
                    view = PodView(placed.pod, placed.requests)
                    self._terms[step.name] = plugin.remove_pod(term, view, self._view(step))

    @staticmethod
    def counts_pods(profile: Profile, terms: Mapping[str, Term]) -> bool:
        """Return whether a plugin has to be told of every pod more or less."""
        return bool(_counting(profile, terms))

    def has_terms(self, terms: Mapping[str, Term]) -> bool:
        """Return whether what was added or removed has changed none of these terms."""
        return all(self._terms[name] is term for name, term in terms.items())

    def copy(self) -> "Trial":
        """Return the same row, to be changed on its own."""
        return Trial(self._runtime, self._profile, dict(self._terms), self.delta.copy())

    def judge(self) -> int:
        """Return the code of the first filter that rejects the row; 0 if it passes."""
        for step in self._profile.filters:
            if step.name not in self._terms:
                continue
            term = self._terms[step.name]
            if code := int(self._runtime.filter(step, term, self._row, self.delta)[0]):
                return code
        return 0

    def _view(self, step: FilterStep) -> RowsView:
        return self._runtime.view(step, self._row, self.delta)


def _counting(
    profile: Profile, terms: Mapping[str, Term]
) -> list[tuple[FilterStep, CountingPlugin, Term]]:
    """Return the plugins whose terms count pods, with their terms."""
    return [
        (step, step.counting, terms[step.name])
        for step in profile.pre_filters
        if step.counting is not None
        and step.name in terms
        and not isinstance(terms[step.name], Verdict)
    ]
