"""What is done for a pod that no node takes: PostFilter, and what comes of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.decision.cycle import NoNode
from k8s_scheduler.core.engine.in_flight import Flight, Flights, Phase
from k8s_scheduler.core.engine.metering.meter import Meter
from k8s_scheduler.core.engine.nominated import Nominees
from k8s_scheduler.core.engine.preemption.disruption_budgets import Budgets
from k8s_scheduler.core.engine.preemption.evaluator import AT_ONCE, Stuck
from k8s_scheduler.core.engine.preemption.evictions import Evictions
from k8s_scheduler.core.engine.preemption.searches import Search, Searches, kind_of
from k8s_scheduler.core.engine.preemption.turns import Turns
from k8s_scheduler.core.engine.preemption.victim_limit import VictimLimit
from k8s_scheduler.core.engine.preemption.work import SEARCH_WORK, WAKING_WORK, Work
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
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.messages.incoming import LimitCaches, RequestResult
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.protocols import Assuming
from k8s_scheduler.core.state.rows import NodeRow

# Why pods are tried again that had to wait for the limit on victims; kube-scheduler has no such
# event.
VICTIM_LIMIT: Final = "VictimLimit"
# So often waking asks about one pod, in steps, before it leaves it to the pod to find out.
_WAKING_STEPS: Final = 8
# Ends the way of a victim that is not bound yet, for a plugin, at a time.
Interrupt = Callable[[Flight, str, float], None]


@dataclass(frozen=True, slots=True)
class Room:
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


class MakingRoom:
    """Asks PostFilter plugins, and sees evictions through."""

    def __init__(
        self,
        *,
        cache: Assuming,
        queue: SchedulingQueue,
        flights: Flights,
        evictions: Evictions,
        runtime: Runtime,
        verdicts: VerdictTable,
        meter: Meter,
        limit: VictimLimit,
        nominees: Nominees,
    ) -> None:
        self.limit = limit
        self.turns = Turns(queue)
        self.searches = Searches(cache)
        self._budgets = Budgets()
        # What is left of this message's share.
        self.search_work = Work()
        self._waking_work = Work()
        # The pod that waking asked about last without an answer, and how often.
        self._asked_in_vain: tuple[PodUid | None, int] = (None, 0)
        self._cache = cache
        self._nominees = nominees
        self._queue = queue
        self._flights = flights
        self._evictions = evictions
        self._runtime = runtime
        self._verdicts = verdicts
        self._meter = meter
        self._interrupt: Interrupt | None = None
        evictions.connect(self)

    def connect(self, interrupt: Interrupt) -> None:
        """Say who ends the way of a pod; before the first preemption."""
        self._interrupt = interrupt

    def begin_message(self) -> None:
        """Let searches and waking do as much as they may in one message."""
        self.search_work.renew(SEARCH_WORK)
        self._waking_work.renew(WAKING_WORK)

    def take_limit(self, message: LimitCaches) -> None:
        """Take no more memory than this for what is known of nodes that were tried."""
        self.searches.memory.limit(message.max_bytes)
        self.searches.arranged.clear()

    def begin_anew(self) -> None:
        """Begin all unfinished searches anew: they are no part of checkpoints."""
        self._queue.dissolve_line()
        self.turns.start_over()
        self.searches.clear()
        self._asked_in_vain = (None, 0)

    def reconfigured(self, max_victims_per_minute: int, *, now: float) -> None:
        """Go by another configuration: other filters may say something else of every node."""
        self.begin_anew()
        self.limit.change(max_victims_per_minute, now=now)

    def tick(self, *, now: float) -> None:
        """Do what is due."""
        self._wake_put_off(now=now)
        self.searches.tidy(now=now)
        self._budgets.tidy()
        self._cache.pods.counters.tidy()
        self._cache.age(now=now)
        if not len(self._cache.nominations):
            self._runtime.promised.forget()
            self._nominees.forget()

    def make(
        self, profile: Profile, queued: QueuedPod, found: NoNode, *, now: float
    ) -> Room | Search:
        """Ask the plugins in turn until one has found room; a search if that is not over yet.

        One that fails ends the asking, and what it says takes the place of all that was said: the
        pod is as unschedulable as it was.
        """
        if found.filtered is None or not profile.post_filters:
            return Room("", NodeName(""))
        # While others come first, only what is known already is told.
        work = Work() if self._queue.is_ahead_of(queued) else self.search_work
        search = self.searches.of(profile, queued, work, now=now)
        watch = self._meter.watches[profile.scheduler_name]
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

    def would(self, profile: Profile, queued: QueuedPod, found: NoNode) -> tuple[Room | None, int]:
        """Return what an attempt would find, and how much work it was to find out.

        Nothing is counted, nobody leaves. None if it takes more than may be done at once: what was
        tried is known when it is asked again.
        """
        if found.filtered is None or not profile.post_filters:
            return Room("", NodeName("")), 0
        units = SEARCH_WORK + 2 * len(self._cache.nodes)
        work = Work(units)
        search = Search(self.searches.memory.of(kind_of(profile, queued)), work)
        case = _Case(profile, queued, found, found.filtered, search)
        if self._cache.nominations.node_of(queued.uid) is not None:
            pod = self._as_promised(queued.pod)
            for step in profile.post_filters:
                plugin = step.plugin
                if isinstance(plugin, PreemptionPlugin) and plugin.not_eligible(
                    pod, self._stuck(case, step)
                ):
                    # Its promise stands, and others leave for it.
                    return Room("", None), 0
        try:
            room = self._ask(case, now=None)
        except SearchSuspended:
            return None, units - work.left
        if room.nominated and self._is_awaited(queued.uid, room.nominated, room.victims):
            room = Room("", None)
        return room, units - work.left

    def _is_awaited(self, uid: PodUid, node: NodeName, victims: Victims | None) -> bool:
        """Return whether a pod is promised a node already, and nobody else has to leave it."""
        if victims is None or self._cache.nominations.node_of(uid) != node:
            return False
        return not any(self.is_staying(PodUid(pod.metadata.uid)) for pod in victims.pods)

    def is_awaited_by(self, uid: PodUid) -> bool:
        """Return whether a pod waits for more than a change: for room that is being made or sought.

        Pods are being told to leave for it, a search for it is not over, or it may have no victims
        now.
        """
        is_due = uid in self._queue.line or self.limit.waits(uid)
        return is_due or self._evictions.is_under_way(uid)

    def _ask(self, case: _Case, *, now: float | None) -> Room:
        """Ask the plugins; without a time nothing is counted and no victims are taken."""
        messages: list[str] = []
        nominated: NodeName | None = None
        for step in case.profile.post_filters:
            stuck = self._stuck(case, step)
            if now is not None and step.preempts and not case.search.is_counted:
                case.search.is_counted = True
                self._meter.tried_to_make_room()
            state, pod = case.filtered.before.state, case.queued.pod
            try:
                with blaming(step.name, "PostFilter"):
                    if case.search.stopped_at is not None:
                        self._carry_on(step.plugin, pod, stuck)
                    result = step.plugin.post_filter(state, pod, stuck)
            except PluginError as error:
                on_purpose = isinstance(error.__cause__, StatusError)
                return Room(error.problem, None, error=None if on_purpose else error)
            if result.nominated is not None:
                room = Room(result.message, result.nominated, result.victims, step.name)
                put_off = None if now is None else self._put_off(case.queued.uid, room, now=now)
                return put_off or room
            if result.message:
                messages.append(result.message)
            if result.clear:
                nominated = NodeName("")
        return Room(", ".join(messages), nominated)

    @staticmethod
    def _carry_on(plugin: PostFilterPlugin, pod: Pod, stuck: Stuck) -> None:
        """Go on where a plugin's search was suspended, if the pod may still preempt."""
        if isinstance(plugin, PreemptionPlugin) and not plugin.not_eligible(pod, stuck):
            stuck.carry_on()

    def _put_off(self, uid: PodUid, room: Room, *, now: float) -> Room | None:
        """Return what is said instead if more pods would have to leave than may now."""
        pods = () if room.victims is None else room.victims.pods
        leaving = sum(self.is_staying(PodUid(pod.metadata.uid)) for pod in pods)
        if not leaving or self.limit.take(uid, leaving, now=now):
            return None
        self._meter.preemption_put_off()
        return Room(
            f"preemption: {leaving} victims would make room, which the limit of "
            f"{self.limit.per_minute} victims per minute (preemption.maxVictimsPerMinute) "
            "does not allow now.",
            NodeName(""),
        )

    def _wake_put_off(self, *, now: float) -> None:
        """Let pods be tried again for which the limit on victims has room now."""
        waiting = [queued for queued in map(self._queue.get, self.limit.waiting) if queued]
        parked = {q.uid: q for q in waiting if q.uid in self._queue.parked}
        for uid in self.limit.waiting:
            if uid not in parked:
                # It is gone, or about to be tried anyway.
                self.limit.drop(uid)
        # The most important first, and then who waits for longest.
        order = sorted(parked.values(), key=lambda q: -(q.pod.spec.priority or 0))
        for uid in self.limit.due(tuple(queued.uid for queued in order), now=now):
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
        if self._evictions.is_under_way(queued.uid):
            # Room is being made for it already. Once that is over, a plugin says whether the pod
            # has to wait for those who leave.
            return None
        if queued.uid in self._queue.line or self.limit.waits(queued.uid) or not among:
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
            stuck = self._stuck(case, step)
            plugin = step.plugin
            if not isinstance(plugin, PreemptionPlugin):
                continue
            if plugin.not_eligible(self._as_promised(case.queued.pod), stuck):
                continue
            for node in stuck.lesser_among(among):
                if self._helps(stuck, case.queued.uid, node):
                    return self._cache.nodes.row_of(node)
        return None

    def _helps(self, stuck: Stuck, uid: PodUid, node: NodeName) -> bool:
        try:
            found = stuck.dry_run(node)
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

    def _stuck(self, case: _Case, step: PluginStep[PostFilterPlugin]) -> Stuck:
        return Stuck(
            at_once=AT_ONCE,
            state=self._cache,
            runtime=self._runtime,
            verdicts=self._verdicts,
            profile=case.profile,
            step=step,
            pod=case.queued.pod,
            rows=case.found.rows,
            filtered=case.filtered,
            nominated=case.found.nominated,
            seed=case.queued.seed,
            search=case.search,
            budgets=self._budgets,
            arranged=self.searches.arranged,
        )

    def start(self, queued: QueuedPod, room: Room, *, now: float) -> None:
        """Let the victims leave, except those that are on their way out."""
        if room.victims is None or not room.nominated:
            return
        self._meter.preempted(len(room.victims.pods))
        pods = room.victims.pods
        staying = [pod for pod in pods if self.is_staying(PodUid(pod.metadata.uid))]
        if not staying:
            return
        self._evictions.start(
            queued.pod,
            attempt=queued.attempts,
            node=room.nominated,
            plugin=room.plugin,
            others=self._take_back(queued.pod, room.nominated),
            victims=staying,
            now=now,
        )
        self._conclude(now=now)

    def _take_back(self, pod: Pod, node: NodeName) -> tuple[Pod, ...]:
        """Take back the promises to less important pods on the node; return those pods."""
        priority = pod.spec.priority or 0
        lesser = tuple(
            other
            for other in self._cache.nominations.on(node).values()
            if (other.spec.priority or 0) < priority
        )
        for other in lesser:
            self._cache.end_nomination(PodUid(other.metadata.uid))
        return tuple(other for other in lesser if other.status.nominated_node_name)

    # Where victims are

    def is_staying(self, uid: PodUid) -> bool:
        """Return whether a pod is there and not on its way out."""
        flight, queued = self._flights.get(uid), self._queue.get(uid)
        if flight is not None:
            pod: Pod | None = flight.pod
        else:
            pod = queued.pod if queued is not None else self._cache.pod(uid)
        return pod is not None and pod.metadata.deletion_timestamp is None

    def wants_place(self, uid: PodUid) -> bool:
        """Return whether a pod is still there without a node of its own."""
        flight, queued = self._flights.get(uid), self._queue.get(uid)
        waiting = flight if flight is not None else queued
        return waiting is not None and waiting.pod.metadata.deletion_timestamp is None

    def on_its_way(self, uid: PodUid) -> Flight | None:
        """Return the flight of a pod that is not being bound yet."""
        flight = self._flights.get(uid)
        return None if flight is None or flight.phase is Phase.BINDING else flight

    def send_back(self, flight: Flight, *, plugin: str, now: float) -> None:
        """End such a flight: a plugin gives its place to another pod."""
        if self._interrupt is None:
            raise RuntimeError("connect() comes before the first preemption")
        self._interrupt(flight, plugin, now)

    # What comes of it

    def saw_leave(self, uid: PodUid, *, now: float) -> None:
        """Take note that the watch has shown a pod leaving; who waited for that may be tried."""
        for waiting in self._evictions.saw_leave(uid):
            self._queue.look_again(waiting, now=now)
        self._conclude(now=now)

    def doubt_grants(self, *, now: float) -> None:
        """Let pods be tried again whose victims stay: the deletions were undone by a restore."""
        self._evictions.doubt_grants()
        self._conclude(now=now)

    def owns(self, result: RequestResult) -> bool:
        """Return whether an answer is about a preemption."""
        return self._evictions.owns(result)

    def answered(self, result: RequestResult) -> None:
        """Take an answer; a pod whose preemption is over may be tried again."""
        self._evictions.answered(result)
        self._conclude(now=result.now)

    def _conclude(self, *, now: float) -> None:
        """Let pods be tried again whose preemption is over.

        At once, if nothing that happens from now on would let them: something went wrong, or the
        last victim had no room on the API server yet, and nobody will see it leave.
        """
        for eviction in self._evictions.take_ended():
            if eviction.failed or eviction.last_in_memory:
                self._queue.activate(eviction.uid, now=now)
            else:
                self._queue.look_again(eviction.uid, now=now)


def rejection(found: NoNode, room: Room) -> str:
    """Return the text of the event and of the condition of a pod that no node takes."""
    message = found.diagnosis.message()
    return f"{message} {room.message}" if room.message else message
