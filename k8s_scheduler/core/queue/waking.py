"""Wakes parked pods that an event has helped, and only those.

What changed is judged by the very filters that rejected the pods: the touched rows, once per group
of parked pods (see `parked`); all rows, where one of the plugins that reject the group looks beyond
the row it judges (at pods elsewhere, or at other objects) and has seen something new there. A pod
is woken iff one of these rows would now take it, so with all messages handled no parked pod is
feasible; or if it could now get room on a touched row by preemption, which is asked once for all
pods of the group that preemption can't tell apart (`peers`).
Events that can't change the mind of a plugin that rejects the group somewhere are not looked at;
nor is a pod that comes or leaves, where plugins that see pods as counts have not counted it
(`interest`). The groups that are left are found, not asked one by one (`watchlist`).
A pod that found no node at all is woken by the first one, fitting or not: what it says of itself
would be wrong from then on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.preemption import SearchSuspended
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.queue.group_judge import CouldMakeRoom, GroupJudge
from k8s_scheduler.core.queue.helpful_changes import HelpfulChanges, helpful_changes
from k8s_scheduler.core.queue.parked_group import ParkedGroup
from k8s_scheduler.core.queue.peers import PreemptionKey
from k8s_scheduler.core.queue.prices import DEAR, judging
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.queue.watchlist import Rejected
from k8s_scheduler.core.state.news.changes import (
    Change,
    Changes,
    event_label,
)
from k8s_scheduler.core.state.protocols import Tables

# Work of one step, by `prices`, and one group more at most: about eight ordinary groups on some
# rows, or one on 5,000. Others' decisions wait behind each step, so it is a small part of a slice.
# While pods wait for a decision, dear groups get as much.
WORK_PER_STEP = 1_000
# What it costs to see that nothing has happened that could help a group.
PASSED_OVER = 20
# Waking a pod costs a hundredth of a millisecond.
PODS_PER_STEP = 500
# Flags are slow to combine.
_NODE_ADDED = Change.NODE_ADD.value


@dataclass(slots=True)
class _Round:
    """Changes, and the groups that have not been judged against them yet, last one first."""

    changes: Changes
    groups: list[ParkedGroup]
    # Pods that are being woken, last one first, with the sequence under which each was parked: one
    # that was tried meanwhile and parked again is another case. It may take several steps.
    waking: list[tuple[QueuedPod, int]] = field(default_factory=list)
    event: str = ""
    # What of all these changes may help, by profile, rejecting plugins, and whether a pod came or
    # left that plugins count: thousands of groups ask the same.
    known: dict[tuple[str, frozenset[str], bool], "HelpfulChanges | None"] = field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class _Help:
    """The event that helped pods of a group, and which of them: by key, or all if None."""

    event: str
    keys: tuple[PreemptionKey, ...] | None = None


class Waker:
    """Compares what changed with the parked pods, in steps.

    A round takes all changes so far and goes through all groups that these may concern; what
    changes meanwhile waits for the next round. A pod that is parked during a round was judged with
    all that had changed.
    """

    def __init__(
        self,
        *,
        queue: SchedulingQueue,
        cache: Tables,
        runtime: Runtime,
        profiles: Mapping[str, Profile],
        could_make_room: CouldMakeRoom,
    ) -> None:
        self._queue = queue
        self._cache = cache
        self._profiles = profiles
        self._round: _Round | None = None
        # The same for groups that are dear to judge (`prices`): what they have not been judged on
        # yet, and how much of the time was left to them while others were decided for.
        self._dear_round: _Round | None = None
        self._dear_changes = Changes()
        self._savings = 0
        self._judge = GroupJudge(cache, runtime, could_make_room)
        self._sampled = 0

    def wake(self, *, now: float) -> None:
        self._begin()
        if self._round is not None:
            if not self._step(self._round, now=now, most=WORK_PER_STEP):
                return
            self._round = None
        self._wake_dear(now=now)

    def _begin(self) -> None:
        """Begin a round with what has changed; what it is to dear groups is noted for later."""
        parked = self._queue.parked
        if self._round is not None or not self._cache.changes:
            return
        changes = self._cache.changes.drain()
        if not len(parked):
            return
        if parked.watchlist.has_any(dear=True):
            self._dear_changes.add(changes)
        self._round = self._begun(changes, dear=False)

    def _begun(self, changes: Changes, *, dear: bool) -> _Round | None:
        """Return a round of the groups that the changes may help; None if there are none."""
        current = _Round(changes, [])
        is_new = any(change.value & _NODE_ADDED for change in changes.rows.values())

        def helps(rejected: Rejected, *, with_pods: bool) -> bool:
            name, rejectors, _ = rejected
            return is_new or self._known(current, name, rejectors, is_met=with_pods) is not None

        found = self._queue.parked.concerned(changes.pods, helps, dear=dear)
        found.reverse()
        current.groups = found
        return current if found else None

    def _wake_dear(self, *, now: float) -> None:
        """Judge a group that is dear: when no pod waits for a decision, or when its share is due.

        Judging it takes as long as a hundred decisions, at every change again. So while pods wait
        for a decision, dear groups get only a share of the time.
        """
        if self._dear_round is None and self._dear_changes:
            self._dear_round = self._begun(self._dear_changes, dear=True)
            self._dear_changes = Changes()
        current = self._dear_round
        if current is None:
            return
        self._savings += WORK_PER_STEP
        group = current.groups[-1] if current.groups else None
        price = 0
        if group is not None and len(group):
            price = judging(group.spec.price, len(self._cache.nodes))
        if self._queue.has_candidates and self._savings < price:
            return
        self._savings = max(0, self._savings - price)
        if self._step(current, now=now, most=1):
            self._dear_round = None

    @property
    def is_due(self) -> bool:
        """Return whether something changed since parked pods were last looked at."""
        if self._round is not None or self._dear_round is not None:
            return True
        return bool((self._cache.changes or self._dear_changes) and len(self._queue.parked))

    def regrouped(self, fresh: Sequence[ParkedGroup]) -> None:
        """Judge groups in rounds under way that were made of others meanwhile."""
        for current in (self._round, self._dear_round):
            if current is not None:
                is_dear = current is self._dear_round
                here = [group for group in fresh if (group.spec.price >= DEAR) is is_dear]
                current.groups += reversed(here)

    def rewind(self) -> None:
        """Give up an unfinished round; its changes are dealt with again from the start.

        What plugins asked is forgotten with it: from here on all goes as in a core that is restored
        from a checkpoint.
        """
        self._queue.parked.forget_questions()
        self._judge.asked = None
        for current in (self._round, self._dear_round):
            if current is not None:
                self._cache.changes.take_back(current.changes)
        self._cache.changes.take_back(self._dear_changes)
        self._cache.changes.forget_pods()
        self._round = self._dear_round = None
        self._dear_changes = Changes()
        self._savings = 0

    def sample(self) -> QueuedPod | None:
        """Return a pod of the next parked group, in turn; None while anything is left to wake.

        Another one of the group each time. The caller judges it afresh: it must not fit, or waking
        has a hole.
        """
        groups = [] if self.is_due else self._queue.parked.groups()
        if not groups:
            return None
        self._sampled += 1
        turn, place = divmod(self._sampled, len(groups))
        group = groups[place]
        return next(islice(group, turn % len(group), None))

    def _step(self, current: _Round, *, now: float, most: int) -> bool:
        """Judge groups until they have cost so much; return whether the round is at its end."""
        self._judge.work = woken = 0
        while True:
            while current.waking:
                if woken >= PODS_PER_STEP:
                    return False
                queued, sequence = current.waking.pop()
                if queued.sequence == sequence and queued.uid in self._queue.parked:
                    self._queue.wake(queued, current.event, now=now)
                    woken += 1
            if not current.groups:
                return True
            if self._judge.work >= most:
                return False
            group = current.groups.pop()
            self._judge.work += PASSED_OVER
            try:
                self._look_at(current, group)
            except SearchSuspended:
                # Whether room could be made is being found out: the group is not done with yet.
                current.groups.append(group)
                return False
            self._judge.asked = None

    def _look_at(self, current: _Round, group: ParkedGroup) -> None:
        """Let the pods of a group be woken if a change has helped them."""
        spec = group.spec
        if len(group):
            current.groups += reversed(spec.regroup(self._cache))
        if not len(group):
            # All have left, or are in other groups, which are judged before this round ends.
            return
        # What happened before the attempt that parked a pod is no news to it.
        news = current.changes.since(group.seen)
        judged = group.first
        found = _first_nodes(group, news) or self._help_for(current, group, news)
        if fresh := spec.regroup(self._cache):
            # The pod was asked something new, and not all of its group answer like it.
            group = spec.group_of(judged)
            current.groups += [other for other in reversed(fresh) if other is not group]
        if found is not None:
            current.event = found.event
            woken = [(queued, queued.sequence) for queued in _helped(group, found)]
            woken.reverse()
            current.waking = woken

    def _help_for(self, current: _Round, group: ParkedGroup, changes: Changes) -> _Help | None:
        """Return the event that made room for pods of a group; None if there is none."""
        profile = self._profiles[group.spec.scheduler_name]
        news = self._news_for(current, group, changes)
        if news is None:
            return None
        try:
            row, keys = self._judge.judge(profile, group, news)
        except PluginError:
            # Let the pod's own cycle meet the error: there it is reported.
            return _Help(news.event)
        except QuantityError:
            # What the pods ask for can't be read. Nothing but another version of them helps.
            return None
        if row is None:
            return None
        return _Help(event_label(news.rows[row]) if row in news.rows else news.event, keys)

    def _news_for(
        self, current: _Round, group: ParkedGroup, changes: Changes
    ) -> HelpfulChanges | None:
        """Return what of the changes may help a group; None if nothing."""
        interest = group.interest
        is_met = interest is None or interest.is_met_by(changes.pods)
        name = group.spec.scheduler_name
        if changes is current.changes:
            return self._known(current, name, group.rejectors, is_met=is_met)
        return helpful_changes(changes, self._profiles[name], group.rejectors, is_met=is_met)

    def _known(
        self, current: _Round, name: str, rejectors: frozenset[str], *, is_met: bool
    ) -> HelpfulChanges | None:
        """Return what of all changes may help groups that are rejected so."""
        key = name, rejectors, is_met
        if key not in current.known:
            profile = self._profiles[name]
            current.known[key] = helpful_changes(current.changes, profile, rejectors, is_met=is_met)
        return current.known[key]


def _helped(group: ParkedGroup, found: _Help) -> list[QueuedPod]:
    if found.keys is None:
        return group.in_order()
    helped = [peers for peers in group.peers() if peers.key in found.keys]
    return [q for peers in helped for q in sorted(peers, key=lambda queued: queued.sequence)]


def _first_nodes(group: ParkedGroup, changes: Changes) -> _Help | None:
    """Return NodeAdd if there are nodes now and there were none when one of the pods was tried."""
    if group.found_no_node and any(change & Change.NODE_ADD for change in changes.rows.values()):
        return _Help(event_label(Change.NODE_ADD))
    return None
