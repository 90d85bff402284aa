"""What is done for a pod that no node takes: PostFilter, and what comes of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.decision.cycle import NoNode
from k8s_scheduler.core.engine.nominated import Nominees
from k8s_scheduler.core.engine.preemption.evaluator import AT_ONCE, Evaluator, UnplacedCase
from k8s_scheduler.core.engine.preemption.evictions import Evictions
from k8s_scheduler.core.engine.preemption.searches import Search, Searches, kind_of
from k8s_scheduler.core.engine.preemption.turns import SearchTurns
from k8s_scheduler.core.engine.preemption.work import SEARCH_WORK, WAKING_WORK, WorkLeft
from k8s_scheduler.core.framework import points
from k8s_scheduler.core.framework.diagnosis import Diagnosis
from k8s_scheduler.core.framework.evaluation.runtime import Filtered, Runtime
from k8s_scheduler.core.framework.plugin import PostFilterPlugin
from k8s_scheduler.core.framework.plugin_errors import PluginError, blaming
from k8s_scheduler.core.framework.preemption import (
    DryRunError,
    PreemptionPlugin,
    SearchSuspended,
    Victims,
)
from k8s_scheduler.core.framework.profile import PluginStep, Profile
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.messages.incoming import LimitCaches
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.rows import NodeRow

# Why pods are tried again that had to wait for the limit on victims; kube-scheduler has no such
# event.
VICTIM_LIMIT: Final = "VictimLimit"
# So often waking asks about one pod, in steps, before it leaves it to the pod to find out.
_WAKING_STEPS: Final = 8


@dataclass(frozen=True, slots=True)
class PostFiltered:
    """What PostFilter found.

    `nominated` is where the pod is promised room; None leaves an earlier promise as it is, the
    empty name takes it back.
    """

    message: str
    nominated: NodeName | None
    victims: Victims | None = None
    # The plugin that makes the room.
    plugin: str = ""
    error: PluginError | None = None
    # Seconds that earlier steps of the search have taken; whether it has missed something.
    earlier_seconds: float = 0.0
    is_outdated: bool = False


@dataclass(frozen=True, slots=True)
class _Case:
    """A pod that no node takes, and how far the search for room has come."""

    profile: Profile
    queued: QueuedPod
    found: NoNode
    filtered: Filtered
    search: Search


class PostFilter:
    """Asks PostFilter plugins: in attempts, and what they would say of parked pods."""

    def __init__(
        self, state: CoreState, runtime: Runtime, *, nominees: Nominees, evictions: Evictions
    ) -> None:
        self._state = state
        self._cache = state.cache
        self._queue = state.queue
        self._limit = state.victim_limit
        self._runtime = runtime
        self._nominees = nominees
        self.evictions = evictions
        self.turns = SearchTurns(state.queue)
        self.searches = Searches(state.cache)
        # What is left of this message's share.
        self.search_work = WorkLeft()
        self._waking_work = WorkLeft()
        # The pod that waking asked about last without an answer, and how often.
        self._asked_in_vain: tuple[PodUid | None, int] = (None, 0)

    def begin_message(self) -> None:
        """Let searches and waking do as much as they may in one message."""
        self.search_work.renew(SEARCH_WORK)
        self._waking_work.renew(WAKING_WORK)

    def take_limit(self, message: LimitCaches) -> None:
        """Take no more memory than this for what is known of nodes that were tried."""
        self.searches.memory.limit(message.max_bytes)
        self.searches.arranged.clear()

    def begin_anew(self) -> None:
        self._queue.dissolve_line()
        self.turns.start_over()
        self.searches.clear()
        self._asked_in_vain = (None, 0)

    def reconfigured(self, max_victims_per_minute: int, *, now: float) -> None:
        """Go by another configuration: other filters may say something else of every node."""
        self.begin_anew()
        self._limit.change(max_victims_per_minute, now=now)

    def tick(self, *, now: float) -> None:
        self._wake_put_off(now=now)
        self.searches.tidy(now=now)
        self._cache.pods.counters.tidy()
        self._cache.age(now=now)
        if not len(self._cache.nominations):
            self._runtime.promised.forget()
            self._nominees.forget()

    def make(
        self, profile: Profile, queued: QueuedPod, found: NoNode, *, now: float
    ) -> PostFiltered | Search:
        """Ask the plugins in turn until one has found room; a search if that is not over yet.

        One that fails ends the asking, and what it says takes the place of all that was said: the
        pod is as unschedulable as it was.
        """
        if found.filtered is None or not profile.post_filters:
            return PostFiltered("", NodeName(""))
        # While others come first, only what is known already is told.
        work = WorkLeft() if self._queue.is_ahead_of(queued) else self.search_work
        search = self.searches.of(profile, queued, work, now=now)
        watch = self._state.meter.watches[profile.scheduler_name]
        started = watch.now()
        try:
            room = self._ask(_Case(profile, queued, found, found.filtered, search), now=now)
        except SearchSuspended:
            search.seconds += watch.now() - started
            self.searches.suspend(profile, queued, search)
            if self.search_work.is_spent:
                self.turns.stepped()
            return search
        self.searches.end(queued.uid)
        status = points.SUCCESS if room.nominated else points.UNSCHEDULABLE
        if room.error is not None:
            status = points.ERROR
        watch.took(points.POST_FILTER, status, watch.now() - started + search.seconds)
        is_outdated = search.is_outdated or search.changes_seen not in (
            None,
            self._cache.changes.count,
        )
        if not search.seconds and not is_outdated:
            return room
        return replace(room, earlier_seconds=search.seconds, is_outdated=is_outdated)

    def would(
        self, profile: Profile, queued: QueuedPod, found: NoNode
    ) -> tuple[PostFiltered | None, int]:
        """Return what an attempt would find, and how much work it was to find out.

        Nothing is counted, no pod leaves. None if it takes more than may be done at once: what was
        tried is known when it is asked again.
        """
        if found.filtered is None or not profile.post_filters:
            return PostFiltered("", NodeName("")), 0
        units = SEARCH_WORK + 2 * len(self._cache.nodes)
        work = WorkLeft(units)
        search = Search(self.searches.memory.of(kind_of(profile, queued)), work)
        case = _Case(profile, queued, found, found.filtered, search)
        if self._cache.nominations.node_of(queued.uid) is not None:
            pod = self._as_promised(queued.pod)
            for step in profile.post_filters:
                plugin = step.plugin
                if isinstance(plugin, PreemptionPlugin) and plugin.not_eligible(
                    pod, self._evaluator(case, step)
                ):
                    # Its promise stands, and others leave for it.
                    return PostFiltered("", None), 0
        try:
            room = self._ask(case, now=None)
        except SearchSuspended:
            return None, units - work.left
        if room.nominated and self._is_awaited(queued.uid, room.nominated, room.victims):
            room = PostFiltered("", None)
        return room, units - work.left

    def _is_awaited(self, uid: PodUid, node: NodeName, victims: Victims | None) -> bool:
        """Return whether a pod is promised a node already, and no other pod has to leave it."""
        if victims is None or self._cache.nominations.node_of(uid) != node:
            return False
        return not any(
            self._state.pods.is_staying(PodUid(pod.metadata.uid)) for pod in victims.pods
        )

    def is_awaited_by(self, uid: PodUid) -> bool:
        """Return whether a pod waits for more than a change: for room that is being made or sought.

        Pods are being told to leave for it, a search for it is not over, or it may have no victims
        now.
        """
        is_due = uid in self._queue.line or self._limit.waits(uid)
        return is_due or self.evictions.is_under_way(uid)

    def _ask(self, case: _Case, *, now: float | None) -> PostFiltered:
        """Ask the plugins; without a time nothing is counted and no victims are taken."""
        messages: list[str] = []
        nominated: NodeName | None = None
        for step in case.profile.post_filters:
            evaluator = self._evaluator(case, step)
            if now is not None and step.preempts and not case.search.is_counted:
                case.search.is_counted = True
                self._state.meter.tried_to_make_room()
            state, pod = case.filtered.before.state, case.queued.pod
            try:
                with blaming(step.name, "PostFilter"):
                    if case.search.stopped_at is not None:
                        self._carry_on(step.plugin, pod, evaluator)
                    result = step.plugin.post_filter(state, pod, evaluator)
            except PluginError as error:
                on_purpose = isinstance(error.__cause__, StatusError)
                return PostFiltered(error.problem, None, error=None if on_purpose else error)
            if result.nominated is not None:
                room = PostFiltered(result.message, result.nominated, result.victims, step.name)
                put_off = None if now is None else self._put_off(case.queued.uid, room, now=now)
                return put_off or room
            if result.message:
                messages.append(result.message)
            if result.clear:
                nominated = NodeName("")
        return PostFiltered(", ".join(messages), nominated)

    @staticmethod
    def _carry_on(plugin: PostFilterPlugin, pod: Pod, evaluator: Evaluator) -> None:
        """Go on where a plugin's search was suspended, if the pod may still preempt."""
        if isinstance(plugin, PreemptionPlugin) and not plugin.not_eligible(pod, evaluator):
            evaluator.carry_on()

    def _put_off(self, uid: PodUid, room: PostFiltered, *, now: float) -> PostFiltered | None:
        """Return what is said instead if more pods would have to leave than may now."""
        pods = () if room.victims is None else room.victims.pods
        leaving = sum(self._state.pods.is_staying(PodUid(pod.metadata.uid)) for pod in pods)
        if not leaving or self._limit.take(uid, leaving, now=now):
            return None
        self._state.meter.metrics.preemptions_put_off.inc()
        return PostFiltered(
            f"preemption: {leaving} victims would make room, which the limit of "
            f"{self._limit.per_minute} victims per minute (preemption.maxVictimsPerMinute) "
            "does not allow now.",
            NodeName(""),
        )

    def _wake_put_off(self, *, now: float) -> None:
        """Let pods be tried again for which the limit on victims has room now."""
        waiting = [queued for queued in map(self._queue.get, self._limit.waiting) if queued]
        parked = {q.uid: q for q in waiting if q.uid in self._queue.parked}
        for uid in self._limit.waiting:
            if uid not in parked:
                # It is gone, or about to be tried anyway.
                self._limit.drop(uid)
        # The most important first, and then the one that waits for longest.
        order = sorted(parked.values(), key=lambda q: -(q.pod.spec.priority or 0))
        for uid in self._limit.due(tuple(queued.uid for queued in order), now=now):
            self._queue.wake(parked[uid], VICTIM_LIMIT, now=now)

    def could(
        self,
        profile: Profile,
        queued: QueuedPod,
        rows: Rows,
        filtered: Filtered,
        among: Sequence[NodeRow],
    ) -> NodeRow | None:
        """Return one of some rows on which preemption would make room for a pod.

        Raises SearchSuspended if that takes more than may be done in one message; what was tried
        is known when it is asked again. If it takes too long altogether, any row will do: the pod
        finds out itself.
        """
        if self.evictions.is_under_way(queued.uid):
            # Room is being made for it already. Once that is over, a plugin says whether the pod
            # has to wait for those that leave.
            return None
        if queued.uid in self._queue.line or self._limit.waits(queued.uid) or not among:
            # It is about to be tried, or has to wait for something else.
            return None
        search = Search(self.searches.memory.of(kind_of(profile, queued)), self._waking_work)
        nominated = self._nominees.counting_for(queued.pod)
        found = NoNode(Diagnosis(len(rows), ()), rows, filtered, nominated)
        try:
            helpful = self._helpful(_Case(profile, queued, found, filtered, search), among)
        except SearchSuspended:
            uid, times = self._asked_in_vain
            times = times + 1 if uid == queued.uid else 1
            if times <= _WAKING_STEPS:
                self._asked_in_vain = (queued.uid, times)
                raise
            helpful = among[0]
        self._asked_in_vain = (None, 0)
        return helpful

    def _helpful(self, case: _Case, among: Sequence[NodeRow]) -> NodeRow | None:
        for step in case.profile.post_filters:
            evaluator = self._evaluator(case, step)
            plugin = step.plugin
            if not isinstance(plugin, PreemptionPlugin):
                continue
            if plugin.not_eligible(self._as_promised(case.queued.pod), evaluator):
                continue
            for node in evaluator.lesser_among(among):
                if self._helps(evaluator, case.queued.uid, node):
                    return self._cache.nodes.row_of(node)
        return None

    def _helps(self, evaluator: Evaluator, uid: PodUid, node: NodeName) -> bool:
        try:
            found = evaluator.dry_run(node)
        except DryRunError:
            # The pod's own attempt meets it, and reports it.
            return True
        return isinstance(found, Victims) and not self._is_awaited(uid, node, found)

    def _as_promised(self, pod: Pod) -> Pod:
        """Return a pod whose status names the node that it is promised: that may be on its way."""
        node = self._cache.nominations.node_of(PodUid(pod.metadata.uid))
        if node is None or node == pod.status.nominated_node_name:
            return pod
        status = msgspec.structs.replace(pod.status, nominated_node_name=node)
        return msgspec.structs.replace(pod, status=status)

    def _evaluator(self, case: _Case, step: PluginStep[PostFilterPlugin]) -> Evaluator:
        return Evaluator(
            self._cache,
            self._runtime,
            self._state.verdicts,
            UnplacedCase(
                profile=case.profile,
                step=step,
                pod=case.queued.pod,
                rows=case.found.rows,
                filtered=case.filtered,
                nominated=case.found.nominated,
                seed=case.queued.seed,
                at_once=AT_ONCE,
            ),
            search=case.search,
            arranged=self.searches.arranged,
        )

    def start(self, queued: QueuedPod, room: PostFiltered, *, now: float) -> None:
        if room.victims is not None and room.nominated:
            self.evictions.start(
                queued, room.nominated, plugin=room.plugin, victims=room.victims.pods, now=now
            )


def rejection(found: NoNode, room: PostFiltered) -> str:
    """Return the text of the event and of the condition of a pod that no node takes."""
    message = found.diagnosis.message()
    return f"{message} {room.message}" if room.message else message
