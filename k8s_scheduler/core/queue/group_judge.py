"""Judges a group of parked pods on rows that changed: by filters first, then by preemption.

One pod is judged for all of its group by the filters, and one for all its peers by preemption.
"""

from collections.abc import Callable, Sequence

from k8s_scheduler.core.framework.evaluation.runtime import Filtered, Runtime
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.queue.helpful_changes import HelpfulChanges
from k8s_scheduler.core.queue.interest import interest_of
from k8s_scheduler.core.queue.parked_group import ParkedGroup
from k8s_scheduler.core.queue.peers import Peers, PreemptionKey
from k8s_scheduler.core.queue.prices import judging
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow

# Of one shape, so many groups of peers are asked at each event whether they could preempt. Of more
# there are hardly ever: they have to differ in priority. Those left out have `engine.renewals`.
PEERS_ASKED = 16

# Returns one of some rows on which preemption would make room for a pod; the engine knows how. It
# raises SearchSuspended where that takes more than one step: it is asked again in the next.
CouldMakeRoom = Callable[[Profile, QueuedPod, Rows, Filtered, Sequence[NodeRow]], NodeRow | None]


class GroupJudge:
    """Finds a row that would take pods of a group now, and counts what that costs."""

    def __init__(self, cache: Tables, runtime: Runtime, could_make_room: CouldMakeRoom) -> None:
        self._cache = cache
        self._runtime = runtime
        self._could_make_room = could_make_room
        # What has been judged so far, by `prices`; the caller sets it back.
        self.work = 0
        # The group that is being asked whether it could preempt, and what some of it answered: an
        # answer may take several steps, and those before it are not asked for again.
        self.asked: tuple[ParkedGroup, dict[PreemptionKey, NodeRow | None]] | None = None

    def judge(
        self, profile: Profile, group: ParkedGroup, news: HelpfulChanges
    ) -> tuple[NodeRow | None, tuple[PreemptionKey, ...] | None]:
        """Return a row that takes pods of a group, a touched one if there is, and which pods.

        What filters and preemption ask about the pod is taken down: the result says nothing about
        pods that answer otherwise.
        """
        touched, asked = news.where(self._cache.nodes)
        self.work += judging(group.spec.price, len(asked))
        # On some rows plugins may count something else than on the others.
        is_known = news.everywhere or group.interest is not None
        reads = Reads(keeps_obtained=True) if is_known else None
        with group.first.view.asking(group.spec.questions) as pod:
            filtered = self._runtime.run_filters(profile, pod, asked, reads=reads)
            if len(filtered.feasible):
                fitting = filtered.feasible.tolist()
                return next((row for row in touched if row in fitting), NodeRow(fitting[0])), None
            group.blame(self._runtime.blamed(filtered.codes))
            found = self._preemptible(profile, group, asked, filtered, touched)
        if reads is not None:
            # Not before: one that is asked again is asked on the same news.
            seen, before = interest_of(reads), group.interest
            if not news.everywhere and seen is not None and before is not None:
                seen = seen.joined(before)
            group.take_interest(seen)
        return found

    def _preemptible(
        self,
        profile: Profile,
        group: ParkedGroup,
        asked: Rows,
        filtered: Filtered,
        touched: Sequence[NodeRow],
    ) -> tuple[NodeRow | None, tuple[PreemptionKey, ...]]:
        """Return a touched row that some pods of a group could get by preemption, and which."""
        first: NodeRow | None = None
        could: list[PreemptionKey] = []
        if self.asked is None or self.asked[0] is not group:
            self.asked = (group, {})
        answers = self.asked[1]
        for peers in group.peers()[:PEERS_ASKED]:
            if peers.key not in answers:
                asked_pod = self._representative(peers)
                row = self._could_make_room(profile, asked_pod, asked, filtered, touched)
                answers[peers.key] = row
            row = answers[peers.key]
            if row is not None:
                could.append(peers.key)
                first = row if first is None else first
        return first, tuple(could)

    def _representative(self, peers: Peers) -> QueuedPod:
        """Return a pod to ask for all its peers: one that was promised nothing, if there is."""
        nominations = self._cache.nominations
        if not len(nominations):
            return next(iter(peers))
        free = (queued for queued in peers if nominations.node_of(queued.uid) is None)
        return next(free, None) or next(iter(peers))
