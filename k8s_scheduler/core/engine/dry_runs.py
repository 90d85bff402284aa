"""Who would have to leave each of many nodes so that a more important pod fits.

The same as `select_victims` does for one node, in step for all of them: everybody less important
leaves every node; then, round by round, the next one of each node is let back in, all nodes are
judged together, and who does not fit any more leaves again and is a victim. A round costs little
more for hundreds of nodes than for one.

Only for a pod whose filters look at nothing but the node itself: where a plugin counts pods in its
term (spreading, affinity), each node needs a term of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.victims import Budgets, importance
from k8s_scheduler.core.framework.judging_rows import Together
from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.preemption import Victims
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.runtime import Runtime
from k8s_scheduler.core.state.delta import Delta, PlacedPod


@dataclass(slots=True)
class Candidate:
    """One node: who is less important there, and who else was promised room."""

    delta: Delta
    lesser: Sequence[PlacedPod]
    promised: Sequence[PlacedPod]
    # Whom to let back in, in this order; the first ones against a budget.
    waiting: list[PlacedPod] = field(default_factory=list)
    protected: int = 0
    victims: list[Pod] = field(default_factory=list)
    violations: int = 0


class DryRuns:
    """Tries many nodes for one pod."""

    def __init__(
        self, runtime: Runtime, profile: Profile, terms: Mapping[str, Term], budgets: Budgets
    ) -> None:
        self._runtime = runtime
        self._profile = profile
        self._terms = terms
        self._budgets = budgets

    def select(self, candidates: Sequence[Candidate]) -> list[Victims | int]:
        """Return for each who has to leave, or the code of what still rejects the pod."""
        for candidate in candidates:
            for placed in candidate.lesser:
                candidate.delta.remove(placed)
        codes = self._judge(candidates)
        fitting = [c for c, code in zip(candidates, codes, strict=True) if not code]
        for candidate in fitting:
            ordered = sorted(candidate.lesser, key=lambda placed: importance(placed.pod))
            violating, harmless = self._budgets.divide(ordered)
            candidate.waiting = violating + harmless
            candidate.protected = len(violating)
        for number in range(max((len(c.waiting) for c in fitting), default=0)):
            self._let_back(number, [c for c in fitting if number < len(c.waiting)])
        return [
            code or Victims(tuple(sorted(c.victims, key=importance)), c.violations)
            for c, code in zip(candidates, codes, strict=True)
        ]

    def _let_back(self, number: int, candidates: Sequence[Candidate]) -> None:
        """Let one more back in on each node, and note where that does not work."""
        for candidate in candidates:
            candidate.delta.add(candidate.waiting[number])
        for candidate, code in zip(candidates, self._judge(candidates), strict=True):
            if code:
                placed = candidate.waiting[number]
                candidate.delta.remove(placed)
                candidate.victims.append(placed.pod)
                candidate.violations += number < candidate.protected

    def _judge(self, candidates: Sequence[Candidate]) -> list[int]:
        """Return the code of what rejects the pod on each node: with promised pods, and without."""
        codes = [0] * len(candidates)
        fuller: dict[int, Delta] = {}
        for place, candidate in enumerate(candidates):
            if candidate.promised:
                fuller[place] = candidate.delta.copy()
                for placed in candidate.promised:
                    fuller[place].add(placed)
        for place, code in zip(fuller, self._codes(list(fuller.values())), strict=True):
            codes[place] = code
        left = [place for place, code in enumerate(codes) if not code]
        for place, code in zip(left, self._codes([candidates[p].delta for p in left]), strict=True):
            codes[place] = code
        return codes

    def _codes(self, deltas: Sequence[Delta]) -> list[int]:
        if not deltas:
            return []
        found = Together(deltas).judge(self._runtime, self._profile, self._terms)
        return [int(code) for code in found]
