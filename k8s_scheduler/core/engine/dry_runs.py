"""Who would have to leave nodes so that a more important pod fits.

Everybody less important leaves at first. If the pod then fits, they are let back in one by one,
first those whose leaving a disruption budget forbids, then the others, the most important first;
who does not fit any more is a victim. That is done in step on all nodes in question: the next one
of each node comes back, and all nodes are judged. Where filters look at nothing but the node
itself, a round costs little more for hundreds of nodes than for one.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.victims import Budgets, ListBudgets, importance
from k8s_scheduler.core.framework.judging_rows import judge_all
from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.preemption import Victims
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.reads import Reads
from k8s_scheduler.core.framework.runtime import Runtime
from k8s_scheduler.core.framework.trial import Trial
from k8s_scheduler.core.state.delta import PlacedPod


@dataclass(slots=True)
class Candidate:
    """One node: who is less important there, and who else was promised room."""

    trial: Trial
    lesser: Sequence[PlacedPod]
    promised: Sequence[PlacedPod]
    # Whom to let back in, in this order; the first ones against a budget.
    waiting: list[PlacedPod] = field(default_factory=list)
    protected: int = 0
    victims: list[Pod] = field(default_factory=list)
    violations: int = 0


class DryRuns:
    """Tries nodes for one pod, whose filters have these terms."""

    def __init__(
        self,
        runtime: Runtime,
        profile: Profile,
        terms: Mapping[str, Term],
        *,
        budgets: Budgets,
        listed: ListBudgets,
        reads: Reads | None = None,
    ) -> None:
        """Try nodes; what filters read is taken down in `reads`."""
        self._runtime = runtime
        self._profile = profile
        self._terms = terms
        self._budgets = budgets
        self._listed = listed
        self._reads = reads

    def select(
        self, candidates: Sequence[Candidate], may_go_on: Callable[[Candidate], bool]
    ) -> list[Victims | int | None]:
        """Return for each who has to leave, or the code of what still rejects the pod.

        `may_go_on` is asked, in turn, about those that would do if everybody left: None of those
        for whom the rest is too much.
        """
        for candidate in candidates:
            candidate.trial.remove(*candidate.lesser)
        codes = self._judge(candidates)
        fitting = [c for c, code in zip(candidates, codes, strict=True) if not code]
        chosen = list(itertools.takewhile(may_go_on, fitting))
        for candidate in chosen:
            ordered = sorted(candidate.lesser, key=lambda placed: importance(placed.pod))
            violating, harmless = self._budgets.divide(ordered, self._listed)
            candidate.waiting = violating + harmless
            candidate.protected = len(violating)
        for number in range(max((len(c.waiting) for c in chosen), default=0)):
            self._let_back(number, [c for c in chosen if number < len(c.waiting)])
        victims = iter([_victims(candidate) for candidate in chosen])
        return [code or next(victims, None) for code in codes]

    def _let_back(self, number: int, candidates: Sequence[Candidate]) -> None:
        """Let one more back in on each node, and note where that does not work."""
        for candidate in candidates:
            candidate.trial.add(candidate.waiting[number])
        for candidate, code in zip(candidates, self._judge(candidates), strict=True):
            if code:
                placed = candidate.waiting[number]
                candidate.trial.remove(placed)
                candidate.victims.append(placed.pod)
                candidate.violations += number < candidate.protected

    def _judge(self, candidates: Sequence[Candidate]) -> list[int]:
        """Return the code of what rejects the pod on each node: with promised pods, and without."""
        codes = [0] * len(candidates)
        fuller: dict[int, Trial] = {}
        for place, candidate in enumerate(candidates):
            if candidate.promised:
                fuller[place] = candidate.trial.copy()
                fuller[place].add(*candidate.promised)
        for place, code in zip(fuller, self._codes(list(fuller.values())), strict=True):
            codes[place] = code
        left = [place for place, code in enumerate(codes) if not code]
        for place, code in zip(left, self._codes([candidates[p].trial for p in left]), strict=True):
            codes[place] = code
        return codes

    def _codes(self, trials: Sequence[Trial]) -> list[int]:
        found = judge_all(self._runtime, self._profile, self._terms, trials, self._reads)
        return [int(code) for code in found]


def _victims(candidate: Candidate) -> Victims:
    return Victims(tuple(sorted(candidate.victims, key=importance)), candidate.violations)
