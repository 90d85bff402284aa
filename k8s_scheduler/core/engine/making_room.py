"""What is done for a pod that no node takes: PostFilter, and what comes of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.cycle import NoNode
from k8s_scheduler.core.engine.evictions import Evictions
from k8s_scheduler.core.engine.flights import Flight, Flights, Phase
from k8s_scheduler.core.engine.metering import Meter
from k8s_scheduler.core.engine.nominated import nominated_for
from k8s_scheduler.core.engine.preemption import AT_ONCE, Stuck
from k8s_scheduler.core.framework import watch as points
from k8s_scheduler.core.framework.diagnosis import Diagnosis
from k8s_scheduler.core.framework.plugin import PostFilterPlugin
from k8s_scheduler.core.framework.plugin_errors import PluginError, blaming
from k8s_scheduler.core.framework.preemption import DryRunError, PreemptionPlugin, Victims
from k8s_scheduler.core.framework.profile import Profile, Step
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.runtime import Filtered, Runtime
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.messages.incoming import RequestResult
from k8s_scheduler.core.messages.outgoing import Instruction
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.node_table import Rows

# Ends the way of a victim that is not bound yet, for a plugin, at a time.
Interrupt = Callable[[Flight, str, float], Iterator[Instruction]]


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


class MakingRoom:
    """Asks PostFilter plugins, and sees evictions through."""

    def __init__(
        self,
        *,
        cache: Cache,
        queue: SchedulingQueue,
        flights: Flights,
        evictions: Evictions,
        runtime: Runtime,
        verdicts: VerdictTable,
        meter: Meter,
    ) -> None:
        self._cache = cache
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

    def make(self, profile: Profile, queued: QueuedPod, found: NoNode) -> Room:
        """Ask the plugins in turn until one has found room.

        One that fails ends the asking, and what it says takes the place of all that was said: the
        pod is as unschedulable as it was.
        """
        if found.filtered is None or not profile.post_filters:
            return Room("", NodeName(""))
        watch = self._meter.watches[profile.scheduler_name]
        started = watch.now()
        room = self._ask(profile, queued, found, found.filtered)
        status = points.SUCCESS if room.nominated else points.UNSCHEDULABLE
        watch.ended(points.POST_FILTER, status if room.error is None else points.ERROR, started)
        return room

    def _ask(self, profile: Profile, queued: QueuedPod, found: NoNode, filtered: Filtered) -> Room:
        messages: list[str] = []
        nominated: NodeName | None = None
        for step in profile.post_filters:
            stuck = self._stuck(profile, step, queued, found, filtered, at_once=AT_ONCE)
            if step.preempts:
                self._meter.tried_to_make_room()
            try:
                with blaming(step.name, "PostFilter"):
                    result = step.plugin.post_filter(filtered.before.state, queued.pod, stuck)
            except PluginError as error:
                on_purpose = isinstance(error.__cause__, StatusError)
                return Room(error.problem, None, error=None if on_purpose else error)
            if result.nominated is not None:
                return Room(result.message, result.nominated, result.victims, step.name)
            if result.message:
                messages.append(result.message)
            if result.clear:
                nominated = NodeName("")
        return Room(", ".join(messages), nominated)

    def could(
        self,
        profile: Profile,
        queued: QueuedPod,
        rows: Rows,
        filtered: Filtered,
        among: Sequence[NodeRow],
    ) -> NodeRow | None:
        """Return one of some rows on which preemption would make room for a pod."""
        promised = self._cache.nominations.node_of(queued.uid)
        row = None if promised is None else self._cache.nodes.row_of(promised)
        if row is not None and self._cache.nodes.node_at(row) is not None:
            # Room is being made for it already.
            return None
        nominated = nominated_for(self._cache, queued.pod)
        found = NoNode(Diagnosis(len(rows), ()), rows, filtered, nominated)
        for step in profile.post_filters:
            stuck = self._stuck(profile, step, queued, found, filtered)
            plugin = step.plugin
            if not isinstance(plugin, PreemptionPlugin) or plugin.not_eligible(queued.pod, stuck):
                continue
            for node in stuck.nodes_with_lesser():
                row = self._cache.nodes.row_of(node)
                if row is not None and row in among and _helps(stuck, node):
                    return row
        return None

    def _stuck(
        self,
        profile: Profile,
        step: Step[PostFilterPlugin],
        queued: QueuedPod,
        found: NoNode,
        filtered: Filtered,
        *,
        at_once: int = 1,
    ) -> Stuck:
        return Stuck(
            at_once=at_once,
            state=self._cache,
            runtime=self._runtime,
            verdicts=self._verdicts,
            profile=profile,
            step=step,
            pod=queued.pod,
            rows=found.rows,
            filtered=filtered,
            nominated=found.nominated,
            seed=queued.seed,
        )

    def start(self, queued: QueuedPod, room: Room, *, now: float) -> Iterator[Instruction]:
        """Let the victims leave, except those that are on their way out."""
        if room.victims is None or not room.nominated:
            return
        self._meter.preempted(len(room.victims.pods))
        pods = room.victims.pods
        staying = [pod for pod in pods if self.is_staying(PodUid(pod.metadata.uid))]
        if not staying:
            return
        yield from self._evictions.start(
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

    def send_back(self, uid: PodUid, *, plugin: str, now: float) -> Iterator[Instruction] | None:
        """Send a pod back that is on its way and not being bound yet; None if it is not."""
        flight = self._flights.get(uid)
        if flight is None or flight.phase is Phase.BINDING:
            return None
        if self._interrupt is None:
            raise RuntimeError("connect() comes before the first preemption")
        return self._interrupt(flight, plugin, now)

    # What comes of it

    def saw_leave(self, uid: PodUid, *, now: float) -> None:
        """Take note that the watch has shown a pod leaving; who waited for that may be tried."""
        for waiting in self._evictions.saw_leave(uid):
            self._queue.look_again(waiting, now=now)
        self._conclude(now=now)

    def owns(self, result: RequestResult) -> bool:
        """Return whether an answer is about a preemption."""
        return self._evictions.owns(result)

    def answered(self, result: RequestResult) -> Iterator[Instruction]:
        """Take an answer; a pod whose preemption is over may be tried again."""
        yield from self._evictions.answered(result)
        self._conclude(now=result.now)

    def _conclude(self, *, now: float) -> None:
        """Let pods be tried again whose preemption is over.

        At once, if nothing that happens from now on would let them: something went wrong, or the
        last victim had no room on the API server yet, and nobody will see it leave.
        """
        for eviction in self._evictions.take_answered():
            self._meter.preemption_ended(failed=eviction.failed)
        for eviction in self._evictions.take_ended():
            if eviction.failed or eviction.last_in_memory:
                self._queue.activate(eviction.uid, now=now)
            else:
                self._queue.look_again(eviction.uid, now=now)


def _helps(stuck: Stuck, node: NodeName) -> bool:
    try:
        return isinstance(stuck.dry_run(node), Victims)
    except DryRunError:
        # The pod's own attempt meets it, and reports it.
        return True
