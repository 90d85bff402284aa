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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.framework.evaluation.runtime import Filtered, Runtime
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.preemption import SearchSuspended
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.queue.interest import interest_of
from k8s_scheduler.core.queue.parked import Alike
from k8s_scheduler.core.queue.peers import Peers, Standing
from k8s_scheduler.core.queue.prices import DEAR, judging
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.queue.watchlist import Rejected
from k8s_scheduler.core.state.news.changes import (
    COUNTED_PODS,
    Change,
    Changes,
    event_label,
    object_event_label,
)
from k8s_scheduler.core.state.nodes.node_table import NodeTable, Rows
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow

# Work of one step, by `prices`, and one group more at most: about eight ordinary groups on some
# rows, or one on 5,000. Others' decisions wait behind each step, so it is a small part of a slice.
# While pods wait for a decision, dear groups get as much.
WORK_PER_STEP = 1_000
# What it costs to see that nothing has happened that could help a group.
PASSED_OVER = 20
# Waking a pod costs a hundredth of a millisecond.
PODS_PER_STEP = 500
# Of one shape, so many groups of peers are asked at each event whether they could preempt. Of more
# there are hardly ever: they have to differ in priority. Those left out have `engine.renewals`.
PEERS_ASKED = 16
# Flags are slow to combine.
_NODE_ADDED = Change.NODE_ADD.value


# Returns one of some rows on which preemption would make room for a pod; the engine knows how. It
# raises SearchSuspended where that takes more than one step: it is asked again in the next.
CouldMakeRoom = Callable[[Profile, QueuedPod, Rows, Filtered, Sequence[NodeRow]], NodeRow | None]


@dataclass(slots=True)
class _Round:
    """Changes, and the groups that have not been judged against them yet, last one first."""

    changes: Changes
    groups: list[Alike]
    # Pods that are being woken, last one first, with the sequence under which each was parked: one
    # that was tried meanwhile and parked again is another case. It may take several steps.
    waking: list[tuple[QueuedPod, int]] = field(default_factory=list)
    event: str = ""
    # What of all these changes may help, by profile, rejecting plugins, and whether a pod came or
    # left that plugins count: thousands of groups ask the same.
    known: dict[tuple[str, frozenset[str], bool], "_News | None"] = field(default_factory=dict)


@dataclass(slots=True)
class _News:
    """What has happened that may help pods that some plugins reject."""

    rows: Mapping[NodeRow, Change]
    # Whether other rows than these may be better now.
    everywhere: bool
    # What it is called, if nothing in particular helps.
    event: str
    # Those of the rows that have a node, as long as the nodes are these.
    _touched: list[NodeRow] = field(default_factory=list)
    _asked: Rows | None = None
    _nodes: Rows | None = None

    def where(self, nodes: NodeTable) -> tuple[list[NodeRow], Rows]:
        """Return the touched rows, and those to be judged."""
        present = nodes.present_rows()
        if self._asked is None or self._nodes is not present:
            self._nodes = present
            self._touched = [row for row in self.rows if nodes.node_at(row) is not None]
            touched = np.array(self._touched, dtype=np.int64)
            self._asked = present if self.everywhere else touched
        return self._touched, self._asked


@dataclass(frozen=True, slots=True)
class _Help:
    """The event that helped pods of a group, and which of them: by standing, or all if None."""

    event: str
    standings: tuple[Standing, ...] | None = None


class Waker:
    """Compares what changed with who is parked, in steps.

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
        self._runtime = runtime
        self._profiles = profiles
        self._round: _Round | None = None
        # The same for groups that are dear to judge (`prices`): what they have not been judged on
        # yet, and how much of the time was left to them while others were decided for.
        self._dear_round: _Round | None = None
        self._dear_changes = Changes()
        self._savings = 0
        # What the present step has cost.
        self._work = 0
        # The group that is being asked whether it could preempt, and what some of it answered: an
        # answer may take several steps, and those before it are not asked for again.
        self._asked: tuple[Alike, dict[Standing, NodeRow | None]] | None = None
        self._sampled = 0
        self._could_make_room = could_make_room

    def wake(self, *, now: float) -> None:
        """Do one step: judge some groups, wake some pods."""
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
        """Judge a group that is dear: when nobody waits for a decision, or when its time has come.

        Others would wait for it as long as for a hundred decisions, at every change again. So
        while they are there it gets a share of the time only.
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
            price = judging(group.siblings.price, len(self._cache.nodes))
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

    def regrouped(self, fresh: Sequence[Alike]) -> None:
        """Judge groups in rounds under way that were made of others meanwhile."""
        for current in (self._round, self._dear_round):
            if current is not None:
                is_dear = current is self._dear_round
                here = [alike for alike in fresh if (alike.siblings.price >= DEAR) is is_dear]
                current.groups += reversed(here)

    def rewind(self) -> None:
        """Give up an unfinished round; its changes are dealt with again from the start.

        What plugins asked is forgotten with it: from here on all goes as in a core that is restored
        from a checkpoint.
        """
        self._queue.parked.forget_questions()
        self._asked = None
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
        alike = groups[place]
        return next(islice(alike, turn % len(alike), None))

    def _step(self, current: _Round, *, now: float, most: int) -> bool:
        """Judge groups until they have cost so much; return whether the round is at its end."""
        self._work = woken = 0
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
            if self._work >= most:
                return False
            group = current.groups.pop()
            self._work += PASSED_OVER
            try:
                self._judge(current, group)
            except SearchSuspended:
                # Whether room could be made is being found out: the group is not done with yet.
                current.groups.append(group)
                return False
            self._asked = None

    def _judge(self, current: _Round, alike: Alike) -> None:
        """Let the pods of a group be woken if a change has helped them."""
        siblings = alike.siblings
        if len(alike):
            current.groups += reversed(siblings.regroup(self._cache))
        if not len(alike):
            # All have left, or are in other groups, which are judged before this round ends.
            return
        # What happened before the attempt that parked a pod is no news to it.
        news = current.changes.since(alike.seen)
        judged = alike.first
        found = _first_nodes(alike, news) or self._help_for(current, alike, news)
        if fresh := siblings.regroup(self._cache):
            # The pod was asked something new, and not all of its group answer like it.
            alike = siblings.group_of(judged)
            current.groups += [other for other in reversed(fresh) if other is not alike]
        if found is not None:
            current.event = found.event
            woken = [(queued, queued.sequence) for queued in _helped(alike, found)]
            woken.reverse()
            current.waking = woken

    def _help_for(self, current: _Round, alike: Alike, changes: Changes) -> _Help | None:
        """Return the event that made room for pods of a group; None if there is none."""
        profile = self._profiles[alike.siblings.scheduler_name]
        news = self._news_for(current, alike, changes)
        if news is None:
            return None
        try:
            row, standings = self._fitting(profile, alike, news)
        except PluginError:
            # Let the pod's own cycle meet the error: there it is reported.
            return _Help(news.event)
        except QuantityError:
            # What the pods ask for can't be read. Nothing but another version of them helps.
            return None
        if row is None:
            return None
        return _Help(event_label(news.rows[row]) if row in news.rows else news.event, standings)

    def _news_for(self, current: _Round, alike: Alike, changes: Changes) -> _News | None:
        """Return what of the changes may help a group; None if nothing."""
        interest = alike.interest
        is_met = interest is None or interest.is_met_by(changes.pods)
        name = alike.siblings.scheduler_name
        if changes is current.changes:
            return self._known(current, name, alike.rejectors, is_met=is_met)
        return _news(changes, self._profiles[name], alike.rejectors, is_met=is_met)

    def _known(
        self, current: _Round, name: str, rejectors: frozenset[str], *, is_met: bool
    ) -> _News | None:
        """Return what of all changes may help groups that are rejected so."""
        key = name, rejectors, is_met
        if key not in current.known:
            profile = self._profiles[name]
            current.known[key] = _news(current.changes, profile, rejectors, is_met=is_met)
        return current.known[key]

    def _fitting(
        self, profile: Profile, alike: Alike, news: _News
    ) -> tuple[NodeRow | None, tuple[Standing, ...] | None]:
        """Return a row that takes pods of a group, a touched one if there is, and which pods.

        What plugins ask about the pod, and who makes room asks as well, is taken down: of pods that
        answer otherwise nothing is known by this.
        """
        touched, asked = news.where(self._cache.nodes)
        self._work += judging(alike.siblings.price, len(asked))
        # On some rows plugins may count something else than on the others.
        is_known = news.everywhere or alike.interest is not None
        reads = Reads(keeps_obtained=True) if is_known else None
        with alike.first.view.asking(alike.siblings.questions) as pod:
            filtered = self._runtime.run_filters(profile, pod, asked, reads=reads)
            if len(filtered.feasible):
                fitting = filtered.feasible.tolist()
                return next((row for row in touched if row in fitting), NodeRow(fitting[0])), None
            alike.blame(self._runtime.blamed(filtered.codes))
            found = self._preemptible(profile, alike, asked, filtered, touched)
        if reads is not None:
            # Not before: one that is asked again is asked on the same news.
            seen, before = interest_of(reads), alike.interest
            if not news.everywhere and seen is not None and before is not None:
                seen = seen.joined(before)
            alike.take_interest(seen)
        return found

    def _preemptible(
        self,
        profile: Profile,
        alike: Alike,
        asked: Rows,
        filtered: Filtered,
        touched: Sequence[NodeRow],
    ) -> tuple[NodeRow | None, tuple[Standing, ...]]:
        """Return a touched row that some pods of a group could get by preemption, and which."""
        first: NodeRow | None = None
        could: list[Standing] = []
        if self._asked is None or self._asked[0] is not alike:
            self._asked = (alike, {})
        answers = self._asked[1]
        for peers in alike.peers()[:PEERS_ASKED]:
            if peers.standing not in answers:
                spokesman = self._spokesman(peers)
                row = self._could_make_room(profile, spokesman, asked, filtered, touched)
                answers[peers.standing] = row
            row = answers[peers.standing]
            if row is not None:
                could.append(peers.standing)
                first = row if first is None else first
        return first, tuple(could)

    def _spokesman(self, peers: Peers) -> QueuedPod:
        """Return a pod to ask for all its peers: one that was promised nothing, if there is."""
        nominations = self._cache.nominations
        if not len(nominations):
            return next(iter(peers))
        free = (queued for queued in peers if nominations.node_of(queued.uid) is None)
        return next(free, None) or next(iter(peers))


def _helped(alike: Alike, found: _Help) -> list[QueuedPod]:
    """Return the pods of a group that an event has helped, in the order in which they are tried."""
    if found.standings is None:
        return alike.in_order()
    helped = [peers for peers in alike.peers() if peers.standing in found.standings]
    return [q for peers in helped for q in sorted(peers, key=lambda queued: queued.sequence)]


def _news(
    changes: Changes, profile: Profile, rejectors: frozenset[str], *, is_met: bool
) -> _News | None:
    """Return what may change the mind of one of the plugins; None if nothing may."""
    plugins = sorted(rejectors)
    rows = _helpful(changes.rows, _help_for_any(plugins, profile, is_met=is_met))
    read = [profile.helpful_kinds.get(name) for name in plugins]
    kinds = [k for k in changes.objects if any(known is None or k in known for known in read)]
    if not rows and not kinds:
        return None
    event = (
        object_event_label(kinds[0], changes.objects[kinds[0]])
        if kinds
        else event_label(next(iter(rows.values())))
    )
    wide = [name for name in plugins if name in profile.wide]
    elsewhere = _helpful(rows, _help_for_any(wide, profile, is_met=is_met))
    return _News(rows, everywhere=bool(kinds or elsewhere), event=event)


def _help_for_any(plugins: Iterable[str], profile: Profile, *, is_met: bool) -> Change:
    """Return the events that may change the mind of one of the plugins.

    A rejector that is no plugin of the profile may be helped by anything. Those that count pods are
    not helped by pods that none of them counts.
    """
    helpful = Change(0)
    for name in plugins:
        helps = profile.helped_by.get(name, ~Change(0))
        if not is_met and name in profile.helped_by_counts:
            helps &= ~COUNTED_PODS
        helpful |= helps
    return helpful


def _helpful(rows: Mapping[NodeRow, Change], helpful: Change) -> dict[NodeRow, Change]:
    """Return what of the events is helpful."""
    # Many rows, few ways in which they changed; and flags are slow to combine.
    bits, known = helpful.value, dict[int, Change]()
    found: dict[NodeRow, Change] = {}
    for row, change in rows.items():
        value = change.value
        if value & bits:
            if value not in known:
                known[value] = change & helpful
            found[row] = known[value]
    return found


def _first_nodes(alike: Alike, changes: Changes) -> _Help | None:
    """Return NodeAdd if there are nodes now and there were none when one of the pods was tried."""
    if alike.found_no_node and any(change & Change.NODE_ADD for change in changes.rows.values()):
        return _Help(event_label(Change.NODE_ADD))
    return None
