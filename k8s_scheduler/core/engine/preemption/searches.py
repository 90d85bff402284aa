"""Searches for room that are carried on from message to message.

A search is no more than what is known of nodes (`outcomes`), and how far its patience goes: each
time its pod has its turn, the pod is judged and its plugin is asked anew, on the state as it is,
and of nodes that have not changed nothing is tried again. So nothing has to be kept in step with
the cluster, and a search that is forgotten is only begun anew.

Where nodes change faster than they can be tried, a search would never end. One that has tried as
many nodes as twice all of them, or has lost everything it knew several times, takes nodes that did
not help for what they were when it tried them; its pod is tried again afterwards, because it has
missed something. Nodes that would help are never taken for what they were.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.core.engine.preemption.arranged import Arranged
from k8s_scheduler.core.engine.preemption.outcomes import Asked, Outcome, OutcomeMemory, Outcomes
from k8s_scheduler.core.engine.preemption.work import RECALL, WorkLeft
from k8s_scheduler.core.framework.extenders import Opinion
from k8s_scheduler.core.framework.preemption import Victims
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.delta import PlacedPod
from k8s_scheduler.core.state.protocols import PlacedPods
from k8s_scheduler.core.state.rows import NodeRow

# More nodes than twice all of them that a search tries, and how often it may lose everything,
# before it loses patience.
_PATIENCE_NODES: Final = 256
_PATIENCE_LOSSES: Final = 3
# So many searches are remembered; one that is forgotten has all its patience again.
_UNDER_WAY: Final = 64
# Victims are remembered for as long without a search.
_VICTIMS_SECONDS: Final = 60.0


@dataclass(slots=True)
class Search:
    """The search for room of one pod, in one attempt."""

    outcomes: Outcomes
    work: WorkLeft
    # What nodes were found to say, whatever has happened since.
    said: dict[NodeName, Outcome] = field(default_factory=dict)
    # The node that was to be tried next when there was no work left.
    stopped_at: NodeName | None = None
    tried: int = 0
    # Whether nodes that were tried last would help; None if none was tried.
    helped: bool | None = None
    losses_before: int = 0
    is_impatient: bool = False
    # Whether something was taken for what it was.
    is_outdated: bool = False
    # For metrics: what it has taken so far, and whether it was counted.
    seconds: float = 0.0
    is_counted: bool = False
    # What extenders have said, and what had changed when they were asked.
    opinion: Opinion | None = None
    changes_seen: int | None = None

    def recall(self, node: NodeName, row: NodeRow, promised: Sequence[PlacedPod]) -> Outcome | None:
        """Return what came of a node; None if it has to be tried."""
        self.work.spend(RECALL)
        found = self.outcomes.recall(row, promised)
        if found is None and self.is_impatient and node in self.said:
            self.is_outdated = True
            found = self.said[node]
        return found

    def remember(
        self,
        outcomes: Mapping[NodeName, tuple[NodeRow, Outcome]],
        promised: Mapping[NodeRow, Sequence[PlacedPod]],
        reads: Reads,
    ) -> None:
        """Take what came of nodes, from what was read for it."""
        self.tried += len(outcomes)
        self.outcomes.remember(dict(outcomes.values()), promised, reads)
        for node, (_, outcome) in outcomes.items():
            if not isinstance(outcome, Victims):
                self.said[node] = outcome

    def look_at_patience(self, node_count: int) -> None:
        """Lose patience if it is time to."""
        losses = self.outcomes.losses - self.losses_before
        if self.tried > 2 * node_count + _PATIENCE_NODES or losses > _PATIENCE_LOSSES:
            self.is_impatient = True


class Searches:
    """All searches under way, and what they share."""

    def __init__(self, state: PlacedPods) -> None:
        self._state = state
        self.memory = OutcomeMemory(state)
        self.arranged = Arranged(state)
        # By pod: the attempt and the kind that a search is of. Oldest first.
        self._under_way: dict[PodUid, tuple[int, Asked, Search]] = {}
        self._last_used = 0.0

    def of(self, profile: Profile, queued: QueuedPod, work: WorkLeft, *, now: float) -> Search:
        """Return the search of a pod's attempt, to go on with so much work."""
        asked = kind_of(profile, queued)
        attempt, known, search = self._under_way.get(queued.uid, (0, asked, None))
        outcomes = self.memory.of(asked)
        self._last_used = now
        if search is None or attempt != queued.attempts or known != asked:
            search = Search(outcomes, work, losses_before=outcomes.losses)
        elif search.outcomes is not outcomes:
            # What it knew was dropped to make room for others.
            search.outcomes, search.losses_before = outcomes, outcomes.losses
        search.work = work
        search.look_at_patience(len(self._state.nodes))
        return search

    def opinion_of(self, profile: Profile, queued: QueuedPod) -> Opinion | None:
        """Return what extenders have said of a pod whose search goes on in this attempt."""
        attempt, known, search = self._under_way.get(queued.uid, (0, None, None))
        if search is None or search.opinion is None:
            return None
        is_same = attempt == queued.attempts and known == kind_of(profile, queued)
        return search.opinion if is_same else None

    def unfinished(self, uid: PodUid) -> Search | None:
        """Return the search of a pod that goes on, whatever attempt it is of."""
        known = self._under_way.get(uid)
        return None if known is None else known[2]

    def suspend(self, profile: Profile, queued: QueuedPod, search: Search) -> None:
        """Keep a search until its pod has its next turn."""
        self._under_way.pop(queued.uid, None)
        self._under_way[queued.uid] = (queued.attempts, kind_of(profile, queued), search)
        if len(self._under_way) > _UNDER_WAY:
            del self._under_way[next(iter(self._under_way))]

    def end(self, uid: PodUid) -> None:
        self._under_way.pop(uid, None)

    def tidy(self, *, now: float) -> None:
        """Hold on to no pods while no search is under way."""
        self.arranged.tidy()
        self.memory.age(now=now)
        if self._last_used and now - self._last_used > _VICTIMS_SECONDS:
            self.memory.forget_pods()
            self._last_used = 0.0

    def forget_rows(self) -> None:
        """Forget what is known by row; searches under way try nodes again."""
        self.memory.clear()
        self.arranged.clear()

    def clear(self) -> None:
        self.memory.clear()
        self.arranged.clear()
        self._under_way.clear()
        self._last_used = 0.0

    def __len__(self) -> int:
        return len(self._under_way)


def kind_of(profile: Profile, queued: QueuedPod) -> Asked:
    """Return what pods have in common of which dry runs come out the same."""
    return profile.scheduler_name, queued.shape, queued.pod.spec.priority or 0
