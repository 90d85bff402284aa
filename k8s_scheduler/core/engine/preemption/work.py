"""How much of a search for room is done in one message: counted, because the core has no clock.

A unit is about a microsecond of CPU, as measured for the parts that a dry run consists of. The
count depends on the state and on nothing else, so a replay stops where the original has stopped.
"""

from typing import Final

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.state.terms.pod_terms import term_count

# What searches for room may do in one message, and what waking may do in one. Together with the
# decisions of a message that stays below the 20 ms of a slice.
SEARCH_WORK: Final = 10_000
WAKING_WORK: Final = 4_000

# To look up what came of a node before.
RECALL: Final = 1
# A dry run; each pod that is taken away in it; and, if the node would do, each that comes back. The
# next ones of all nodes that are tried together come back at once, in rounds.
_TRIAL: Final = 20
_TAKE_AWAY: Final = 2
_LET_BACK: Final = 4
# The same where what they take is added up, and no node is judged.
_ADD_UP: Final = 3
ROUND: Final = 60
# Below this part of what there was, what is left is not worth another round.
_REST: Final = 4
# The same for each plugin whose term counts pods: terms are made anew, and rows judged one by one.
_TRIAL_COUNTING: Final = 30
_TAKE_AWAY_COUNTING: Final = 3
_LET_BACK_COUNTING: Final = 70
# So many terms of a pod's affinity make a count twice as dear.
_TERMS: Final = 4


class WorkLeft:
    """What is left to do in one message."""

    __slots__ = ("_rest", "left")

    def __init__(self, units: int = 0) -> None:
        self.renew(units)

    def renew(self, units: int) -> None:
        self.left = units
        self._rest = units // _REST

    @property
    def is_spent(self) -> bool:
        return self.left <= self._rest

    def spend(self, units: int) -> None:
        self.left -= units


class Price:
    """What dry runs cost for one pod."""

    __slots__ = ("_counting", "_one_by_one", "_weight")

    def __init__(self, pod: Pod, *, counting: int, one_by_one: int) -> None:
        """Know how many plugins count pods in their terms, and how many are told one by one."""
        self._counting = counting
        self._one_by_one = one_by_one
        spread = len(pod.spec.topology_spread_constraints or ())
        self._weight = _TERMS + term_count(pod) + spread

    def take_away(self, pods: int, terms: int) -> int:
        dear = self._one_by_one * (pods * self._weight + terms) // _TERMS
        base = _TRIAL + self._counting * _TRIAL_COUNTING * self._weight // _TERMS
        return base + pods * _TAKE_AWAY + dear * _TAKE_AWAY_COUNTING

    def let_back(self, pods: int, terms: int) -> int:
        dear = self._counting * (pods * self._weight + terms) // _TERMS
        return pods * _LET_BACK + dear * _LET_BACK_COUNTING

    def expected(self, pods: int, terms: int) -> int:
        """Return what it will cost to find out which of them come back, as far as is known."""
        return self.let_back(pods, terms) if self._one_by_one else self.add_up(pods)

    @staticmethod
    def add_up(pods: int) -> int:
        """Return what it costs to find out by sums which of them come back."""
        return pods * _ADD_UP


def terms_of(pods: list[Pod]) -> int:
    return sum(map(term_count, pods))
