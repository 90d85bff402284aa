"""Who would have to leave nodes so that a more important pod fits.

Everybody less important leaves at first. If the pod then fits, they are let back in one by one,
first those whose leaving a disruption budget forbids, then the others, the most important first;
who does not fit any more is a victim. Where filters see nothing of them but what they take, that is
found by sums (`reprieve.py`). Elsewhere it is done in step on all nodes in question: the next one
of each node comes back, and all nodes are judged. Where filters look at nothing but the node
itself, a round costs little more for hundreds of nodes than for one.
"""

import bisect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.preemption.arranged import Lesser
from k8s_scheduler.core.engine.preemption.disruption_budgets import Budgets, ListBudgets, importance
from k8s_scheduler.core.engine.preemption.reprieve import Reprieve, Room, narrow, victims
from k8s_scheduler.core.engine.preemption.work import terms_of
from k8s_scheduler.core.framework.departed import Quota
from k8s_scheduler.core.framework.evaluation.judging_rows import judge_all
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.evaluation.trial import Trial
from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.preemption import Victims
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.state.delta import PlacedPod


@dataclass(slots=True)
class DryRunNode:
    """One node: who is less important there, and who else was promised room."""

    trial: Trial
    lesser: Lesser
    promised: Sequence[PlacedPod]
    # The pods to let back in, in this order; the first ones against a budget.
    waiting: Sequence[PlacedPod] = ()
    protected: int = 0
    victims: list[Pod] = field(default_factory=list)
    violations: int = 0
    # How much the pods that come back may take, if that decides; and the pods of which only so many
    # may come back, whatever they take.
    room: Room | None = None
    quotas: list[Quota] = field(default_factory=list)

    @property
    def amount(self) -> tuple[int, int]:
        """How many pods a dry run moves, and how many terms they hold."""
        promised = self.promised
        pods = len(self.lesser.pods) + len(promised)
        return pods, self.lesser.terms + terms_of([placed.pod for placed in promised])


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
        self, candidates: Sequence[DryRunNode], may_go_on: Callable[[DryRunNode], bool]
    ) -> list[Victims | int | None]:
        """Return for each who has to leave, or the code of what still rejects the pod.

        `may_go_on` is asked, in turn, about those that would do if everybody left: None of those
        for which the rest is too much.
        """
        for candidate in candidates:
            lesser = candidate.lesser
            candidate.trial.remove_all(lesser.gone, crowd=lesser.crowd, departed=lesser.departed)
        codes = self._judge(candidates)
        fitting = [c for c, code in zip(candidates, codes, strict=True) if not code]
        self._find_rooms(fitting)
        chosen = list(itertools.takewhile(may_go_on, fitting))
        for candidate in chosen:
            divided = candidate.lesser.divided(self._budgets, self._listed)
            candidate.waiting, candidate.protected = divided
        judged = [candidate for candidate in chosen if not _found_by_sums(candidate)]
        for number in range(max((len(c.waiting) for c in judged), default=0)):
            self._let_back(number, [c for c in judged if number < len(c.waiting)])
        left = iter([_victims(candidate) for candidate in chosen])
        return [code or next(left, None) for code in codes]

    def _find_rooms(self, candidates: Sequence[DryRunNode]) -> None:
        """Note how much room there is on nodes where who comes back can be found by that."""
        reprieve = Reprieve(self._runtime, self._profile, self._terms, self._reads)
        simple = [c for c in candidates if _find_quotas(c, reprieve, c.trial)]
        for candidate, room in zip(simple, reprieve.rooms([c.trial for c in simple]), strict=True):
            candidate.room = room
        # Judged are they with promised pods, and without.
        promised = [c for c in simple if c.promised and c.room is not None]
        fuller = [_fuller(candidate) for candidate in promised]
        for candidate, trial, room in zip(promised, fuller, reprieve.rooms(fuller), strict=True):
            told = room is not None and _find_quotas(candidate, reprieve, trial)
            if not told or room is None or candidate.room is None:
                candidate.room = None
            else:
                narrow(candidate.room, room)

    def _let_back(self, number: int, candidates: Sequence[DryRunNode]) -> None:
        """Let one more back in on each node, and note where that does not work."""
        for candidate in candidates:
            candidate.trial.add(candidate.waiting[number])
        for candidate, code in zip(candidates, self._judge(candidates), strict=True):
            if code:
                placed = candidate.waiting[number]
                candidate.trial.remove(placed)
                candidate.victims.append(placed.pod)
                candidate.violations += number < candidate.protected

    def _judge(self, candidates: Sequence[DryRunNode]) -> list[int]:
        """Return the code of what rejects the pod on each node: with promised pods, and without."""
        codes = [0] * len(candidates)
        fuller: dict[int, Trial] = {}
        for place, candidate in enumerate(candidates):
            if candidate.promised:
                fuller[place] = _fuller(candidate)
        for place, code in zip(fuller, self._codes(list(fuller.values())), strict=True):
            codes[place] = code
        left = [place for place, code in enumerate(codes) if not code]
        for place, code in zip(left, self._codes([candidates[p].trial for p in left]), strict=True):
            codes[place] = code
        return codes

    def _codes(self, trials: Sequence[Trial]) -> list[int]:
        found = judge_all(self._runtime, self._profile, self._terms, trials, self._reads)
        return [int(code) for code in found]


def _fuller(candidate: DryRunNode) -> Trial:
    """Return the node with those who were promised room there."""
    fuller = candidate.trial.copy()
    fuller.add(*candidate.promised)
    return fuller


def _found_by_sums(candidate: DryRunNode) -> bool:
    """Find who does not come back by the room that there is; return whether that worked."""
    if candidate.room is None:
        return False
    found = victims(candidate.waiting, candidate.room, _quotas(candidate))
    if found is None:
        return False
    candidate.victims = [candidate.waiting[place].pod for place in found]
    candidate.violations = bisect.bisect_left(found, candidate.protected)
    return True


def _find_quotas(candidate: DryRunNode, reprieve: Reprieve, trial: Trial) -> bool:
    """Note of which pods only so many may come back; return whether plugins can say that."""
    quotas = reprieve.quotas(trial, candidate.lesser)
    candidate.quotas += quotas or ()
    return quotas is not None


def _quotas(candidate: DryRunNode) -> list[Quota]:
    """Return the quotas by places among those who wait to come back."""
    quotas, pods = candidate.quotas, candidate.lesser.pods
    if not quotas or candidate.waiting is pods:
        return quotas
    # Budgets have changed the order.
    places = {placed.uid: place for place, placed in enumerate(candidate.waiting)}
    return [Quota(q.most, [places[pods[place].uid] for place in q.places]) for q in quotas]


def _victims(candidate: DryRunNode) -> Victims:
    pods = candidate.victims
    if 0 < candidate.protected < len(candidate.waiting):
        # Otherwise they are in this order already.
        pods = sorted(pods, key=importance)
    return Victims(tuple(pods), candidate.violations)
