"""One row with some pods more or less: what dry runs and promised pods are judged on."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from k8s_scheduler.core.framework.departed import Departed, Quota
from k8s_scheduler.core.framework.dry_run_plugins import CountingPlugin
from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.plugin_errors import blaming
from k8s_scheduler.core.framework.profile import FilterStep, Profile
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.framework.views.pod_view import PodView, Questions
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.state.counts.pod_counter import Crowd
from k8s_scheduler.core.state.delta import Delta, PlacedPod

if TYPE_CHECKING:
    from k8s_scheduler.core.framework.evaluation.runtime import Runtime


class Trial:
    """One row with some pods more or less, as the filters would judge it."""

    def __init__(
        self,
        runtime: "Runtime",
        profile: Profile,
        terms: dict[str, Term],
        delta: Delta,
        reads: Reads | None = None,
        *,
        questions: Questions | None = None,
    ) -> None:
        """Try a row; `questions` takes down what is asked of the pods that come or go."""
        self._runtime = runtime
        self._questions = questions
        self._reads = reads
        self._profile = profile
        self._terms = terms
        self._counting = counting_steps(profile, terms)
        self.delta = delta
        # Whether a plugin has another term for it than for the row as it is.
        self.has_own_terms = False
        # Of pods that were taken away together: the places of those that may not come back, as far
        # as plugins go that count pods; None if that can't be said.
        self.barred: frozenset[int] | None = frozenset()
        self._row = np.array([delta.row], dtype=np.int64)

    def add(self, *pods: PlacedPod) -> None:
        for placed in pods:
            self.delta.add(placed)
            for step, plugin in self._counting:
                term = self._terms[step.name]
                with blaming(step.name, "AddPod"):
                    view = PodView(placed.pod, placed.requests, self._questions)
                    term = plugin.add_pod(term, view, self._view(step))
                if term is not self._terms[step.name] and not _is_told_who_bars(step):
                    self.barred = None
                self._replace(step, term)

    def remove(self, *pods: PlacedPod) -> None:
        if not self._counting:
            self.delta.remove_all(pods)
            return
        for placed in pods:
            self.delta.remove(placed)
            for step, plugin in self._counting:
                term = self._terms[step.name]
                with blaming(step.name, "RemovePod"):
                    view = PodView(placed.pod, placed.requests, self._questions)
                    self._replace(step, plugin.remove_pod(term, view, self._view(step)))

    def remove_all(
        self,
        gone: Delta,
        *,
        crowd: Callable[[], Crowd],
        departed: Callable[[], Departed],
    ) -> None:
        """Let pods be gone from the row as it is; `gone` is the row without them.

        `crowd` and `departed` show the same pods to plugins that count them.
        """
        self.delta = gone.copy()
        for step, plugin in self._counting:
            with blaming(step.name, "RemovePod"):
                term, view = self._terms[step.name], self._view(step)
                if step.barring is not None:
                    term, barred = step.barring.remove_pods(term, crowd(), view)
                    if self.barred is not None:
                        self.barred |= frozenset(barred)
                else:
                    if step.thinning is not None:
                        term = step.thinning.without(term, departed(), view)
                    else:
                        for pod in departed().pods:
                            term = plugin.remove_pod(term, pod, view)
                    if term is not self._terms[step.name] and step.sifting is None:
                        self.barred = None
                self._replace(step, term)

    def _replace(self, step: FilterStep, term: Term) -> None:
        self.has_own_terms = self.has_own_terms or term is not self._terms[step.name]
        self._terms[step.name] = term

    def copy(self) -> "Trial":
        """Return the same row, to be changed on its own."""
        terms = dict(self._terms)
        delta, reads = self.delta.copy(), self._reads
        twin = Trial(self._runtime, self._profile, terms, delta, reads, questions=self._questions)
        twin.has_own_terms = self.has_own_terms
        twin.barred = self.barred
        return twin

    def judge(self) -> int:
        """Return the code of the first filter that rejects the row; 0 if it passes."""
        for step in self._profile.filters:
            if step.name not in self._terms:
                continue
            term = self._terms[step.name]
            found = self._runtime.filter(step, term, self._row, self.delta, self._reads)
            if code := int(found[0]):
                return code
        return 0

    def quotas(self, step: FilterStep, pods: Departed) -> Iterable[Quota] | None:
        """Return of which of these pods, all of which are gone, only so many may come back.

        As far as one plugin goes, and only where the row passes. None if that can't be said.
        """
        if step.sifting is None:
            return None
        with blaming(step.name, "Filter"):
            return step.sifting.quotas(self._terms[step.name], pods, self._view(step))

    def _view(self, step: FilterStep) -> RowsView:
        return self._runtime.view(step, self._row, self.delta, self._reads)


def _is_told_who_bars(step: FilterStep) -> bool:
    """Return whether a plugin that counts pods says who of them bars a row."""
    return step.barring is not None or step.sifting is not None


def counting_steps(
    profile: Profile, terms: Mapping[str, Term]
) -> list[tuple[FilterStep, CountingPlugin]]:
    """Return the plugins whose terms count pods: they are told of every one more or less."""
    return [
        (step, step.counting)
        for step in profile.pre_filters
        if step.counting is not None
        and step.name in terms
        and not isinstance(terms[step.name], Verdict)
        and (step.thinning is None or step.thinning.counts(terms[step.name]))
    ]
