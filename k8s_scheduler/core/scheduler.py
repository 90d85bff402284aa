"""The core as a whole: `handle(message) -> instructions`.

Everything a scheduler knows changes here and nowhere else, one message at a time, so a list of
messages is a complete account of what happened. A message is handled to its end: there is no
moment at which half of it has been applied.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod, is_terminating
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.engine import quarantining, shortening
from k8s_scheduler.core.engine.attempts import Attempts, Witness
from k8s_scheduler.core.engine.batch import Batch
from k8s_scheduler.core.engine.binding.binding_cycle import Departure
from k8s_scheduler.core.engine.binding.unconfirmed import Unconfirmed, found_in, tell_read
from k8s_scheduler.core.engine.checkpoints import Parts, restore, take_checkpoint
from k8s_scheduler.core.engine.checks.holdings import Holdings
from k8s_scheduler.core.engine.checks.judging import Judge, Judgement
from k8s_scheduler.core.engine.checks.overfilled import Overfilled
from k8s_scheduler.core.engine.decision.cycle import Cycle
from k8s_scheduler.core.engine.decision.suspensions import Suspensions
from k8s_scheduler.core.engine.failure import unreadable
from k8s_scheduler.core.engine.in_flight import Flights
from k8s_scheduler.core.engine.limiting import Limiting
from k8s_scheduler.core.engine.metering.event_labels import EVENTS
from k8s_scheduler.core.engine.metering.limit_meter import LimitMeter
from k8s_scheduler.core.engine.metering.meter import Meter
from k8s_scheduler.core.engine.node_messages import NodeMessages
from k8s_scheduler.core.engine.numbering import Numbers
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.engine.parked.parked_pods import ParkedPods
from k8s_scheduler.core.engine.pre_enqueue import EntranceGate
from k8s_scheduler.core.engine.preemption.evictions import Evictions
from k8s_scheduler.core.engine.preemption.post_filter import MakingRoom
from k8s_scheduler.core.engine.preemption.victim_limit import VictimLimit
from k8s_scheduler.core.engine.promises import Promises
from k8s_scheduler.core.engine.reconfiguring import Reconfiguring, policy_of
from k8s_scheduler.core.engine.shapes.meter import ShapeMeter
from k8s_scheduler.core.engine.shapes.shape_cache import ShapeCache
from k8s_scheduler.core.engine.shapes.tally import Tally
from k8s_scheduler.core.engine.shapes.verification import Verifier
from k8s_scheduler.core.engine.timed_plugins import TimedProfiles
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.profile import compile_profiles
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.messages.checkpoint import Checkpoint
from k8s_scheduler.core.messages.incoming import (
    BindResult,
    ExtenderAnswer,
    HoldBack,
    LimitCaches,
    Message,
    NodeChanged,
    ObjectChanged,
    PodChanged,
    PodRead,
    Quarantine,
    Reconfigure,
    Recount,
    RequestResult,
    Restore,
    Schedule,
    StorageSetBack,
    Tick,
)
from k8s_scheduler.core.messages.outgoing import Instruction
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.obs.metrics import Metrics, SchedulerMetrics

# Each handler takes its own message type; the table pairs them.
Handler = Callable[[Any], None]


class Scheduler:
    """One scheduler: its view of the cluster, its queue, its profiles."""

    def __init__(
        self,
        setup: Setup,
        *,
        metrics: SchedulerMetrics | None = None,
        perf: Callable[[], float] = lambda: 0.0,
        witness: Witness | None = None,
    ) -> None:
        """Build the graph; raises ProfileError if a profile can't be run.

        `perf` is read for metrics only, never for a decision. `witness` is told of each decision
        before it is made; it may look (`snapshot`, `node_of`) and must change nothing.
        """
        self._setup = setup
        self._profiles = setup.compiled()
        verdicts = VerdictTable()
        self._cache = Cache(bounds_requests=True)
        self._flights = Flights(self._cache)
        out = self._out = Outbox()
        numbers = Numbers()
        self._suspensions = Suspensions(setup.extenders, numbers)
        self._unconfirmed, self._perf = Unconfirmed(self._cache, out), perf
        metrics = metrics or Metrics().scheduler
        self._meter = Meter(metrics, tuple(self._profiles), perf=perf)
        self._meter.watch_bindings(self._flights.__len__)
        self._evictions = Evictions(numbers, self._meter, out=out)
        self._overfilled = Overfilled(self._cache, self._meter, profiles=self._profiles, out=out)
        self._timed = TimedProfiles(self._profiles, self._meter, perf)
        runtime = Runtime(self._cache, verdicts)
        self._shapes = ShapeCache(self._cache, runtime, verdicts)
        self._shape_meter = ShapeMeter(metrics)
        shapes = self._shapes if setup.keeps_evaluations else None
        self._judge = Judge(self._cache, runtime, verdicts, shapes)
        verifier = Verifier(
            self._cache,
            runtime,
            verdicts,
            rate=setup.verified_share,
            out=out,
            count=self._shape_meter.verified,
        )
        self._cycle = Cycle(
            self._cache,
            runtime,
            verdicts,
            watches=self._meter.watches,
            shapes=shapes,
            verifier=verifier if setup.verified_share else None,
        )
        self._limiting = Limiting(
            setup.pod_limits,
            setup.node_limits,
            meter=LimitMeter(metrics),
            out=out,
        )
        self._node_messages = NodeMessages(
            self._cache, self._overfilled, limiting=self._limiting, meter=self._meter, out=out
        )
        gate = EntranceGate(
            self._evictions,
            self._timed,
            self._meter,
            self._limiting,
            out=out,
        )
        self._queue = SchedulingQueue(
            sort_key=next(iter(self._profiles.values())).queue_sort.sort_key,
            is_gated=gate.is_gated,
            policy=setup.queue,
            observer=self._meter,
            is_over_limit=self._limiting.is_over,
        )
        self._promises = Promises(
            self._cache, self._queue, self._suspensions, self._limiting, served=self._profiles
        )
        self._making_room = MakingRoom(
            limit=VictimLimit(setup.max_victims_per_minute),
            cache=self._cache,
            queue=self._queue,
            flights=self._flights,
            evictions=self._evictions,
            runtime=runtime,
            verdicts=verdicts,
            meter=self._meter,
            nominees=self._cycle.nominees,
        )
        self._parked = ParkedPods(
            cache=self._cache,
            queue=self._queue,
            runtime=runtime,
            cycle=self._cycle,
            making_room=self._making_room,
            profiles=self._profiles,
            meter=self._meter,
            out=out,
        )
        self._departure = Departure(
            cache=self._cache,
            flights=self._flights,
            runtime=runtime,
            profiles=self._profiles,
            numbers=numbers,
            timed=self._timed,
            meter=self._meter,
            out=out,
        )
        self._attempts = Attempts(
            cache=self._cache,
            queue=self._queue,
            flights=self._flights,
            cycle=self._cycle,
            departure=self._departure,
            making_room=self._making_room,
            suspensions=self._suspensions,
            unconfirmed=self._unconfirmed,
            timed=self._timed,
            meter=self._meter,
            perf=perf,
            out=out,
            witness=witness,
        )
        self._batch = Batch(self._attempts, self._making_room, self._queue)
        self._parts = Parts(
            cache=self._cache,
            queue=self._queue,
            flights=self._flights,
            evictions=self._evictions,
            suspensions=self._suspensions,
            cycle=self._cycle,
            numbers=numbers,
            unconfirmed=self._unconfirmed,
            limiting=self._limiting,
            victim_limit=self._making_room.limit,
            renewals=self._parked.renewals,
        )
        self._reconfiguring = Reconfiguring(
            setup.profiles,
            lambda profiles: compile_profiles(profiles, setup.plugins),
            profiles=self._profiles,
            timed=self._timed,
            meter=self._meter,
            cache=self._cache,
            queue=self._queue,
            flights=self._flights,
            departure=self._departure,
            attempts=self._attempts,
            shapes=self._shapes,
            limiting=self._limiting,
            parked=self._parked,
            out=out,
        )
        self._handlers = self._handlers_by_type()

    # Messages

    def handle(self, message: Message) -> list[Instruction]:
        """Take one message; return what is to be done about it."""
        event_of = EVENTS.get(type(message))
        event = "" if event_of is None else event_of(message, self._cache, self._queue)
        started = self._perf() if event else 0.0
        self._making_room.begin_message()
        self._handlers[type(message)](message)
        if event:
            self._meter.handled(event, self._perf() - started)
        self._attempts.settle(now=message.now)
        return self._out.drain()

    def _handlers_by_type(self) -> dict[type[Message], Handler]:
        return {
            PodChanged: self._pod_changed,
            NodeChanged: self._node_messages.changed,
            ObjectChanged: self._object_changed,
            Schedule: self._schedule,
            BindResult: self._attempts.take_result,
            RequestResult: self._attempts.take_answer,
            ExtenderAnswer: self._attempts.take_opinion,
            PodRead: self._pod_read,
            Recount: self._node_messages.recount,
            HoldBack: lambda message: self._queue.hold_back(message.namespaces),
            StorageSetBack: self._storage_set_back,
            LimitCaches: self._limit_caches,
            Tick: self._tick,
            Quarantine: lambda message: quarantining.begin(message, self._queue, out=self._out),
            Reconfigure: self._reconfigure,
            Restore: self._restore,
        }

    # What the shell may ask

    @property
    def has_work(self) -> bool:
        """Return whether `Schedule` would find something to do."""
        queue = self._queue
        return queue.has_candidates or self._parked.is_due or self._limiting.has_untold

    @property
    def next_quarantined(self) -> PodUid | None:
        """Return the pod of the quarantine that `Schedule` would try now; None for any other."""
        return self._queue.next_quarantined

    @property
    def binding_count(self) -> int:
        """Return how many bindings are under way."""
        return len(self._flights)

    @property
    def pending_count(self) -> int:
        """Return how many pods wait, wherever they do."""
        return len(self._queue)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of objects, besides pods and nodes, that the profiles depend on.

        After a change of the configuration also those that pods on their way still need.
        """
        return self._reconfiguring.kinds

    @property
    def setup(self) -> Setup:
        """Return what a core has to be made from to be restored to a checkpoint taken now."""
        return self._setup

    @property
    def scheduler_names(self) -> frozenset[str]:
        """Return whose pods are scheduled."""
        return frozenset(self._profiles)

    @property
    def tally(self) -> Tally:
        """Return how often evaluations that are kept could be used."""
        return self._shapes.tally

    def judge(self, pod: Pod, *, makes_room: bool = True) -> Judgement:
        """Return what this scheduler would think of a pod now; nothing changes.

        Raises KeyError if no profile serves the pod, PluginError and QuantityError as a cycle does,
        OverLimitError if it would not be tried.
        """
        self._limiting.check(pod)
        profile = self._profiles[pod.spec.scheduler_name]
        return self._judge.judge(profile, pod, makes_room=makes_room)

    @property
    def holdings(self) -> Holdings:
        """Return a look at the state, to be compared or printed."""
        return Holdings(self._parts, self._profiles)

    def node_of(self, uid: PodUid) -> NodeName | None:
        """Return the node on which a pod takes room, bound or about to be; None if on none."""
        return self._cache.node_of(uid)

    def checkpoint(self) -> Checkpoint:
        """Return the whole state as data; it shares the objects and copies none."""
        self._parked.rewind()
        self._making_room.begin_anew()
        generation, earlier = self._timed.generation, self._reconfiguring.entries()
        return take_checkpoint(self._parts, generation=generation, earlier=earlier)

    def snapshot(self) -> Checkpoint:
        """Return the state as a decision sees it now, to be looked at; nothing changes.

        It is no checkpoint: what is half done is not part of it.
        """
        return take_checkpoint(self._parts)

    # Pods and nodes

    def _pod_changed(self, message: PodChanged) -> None:
        self._take_pod(message)
        if message.pod is None or is_terminating(message.pod):
            self._making_room.saw_leave(message.uid, now=message.now)

    def _take_pod(self, message: PodChanged) -> None:
        uid, pod = message.uid, message.pod
        self._promises.keep(uid, pod)
        if pod is None:
            self._unconfirmed.seen(uid)
            self._queue.remove(uid)
            self._attempts.questions.forget(uid)
            self._attempts.abandon(uid)
            left = self._cache.place_of(uid)
            self._limiting.left(uid)
            self._cache.remove_pod(uid)
            self._overfilled.pod_left(left)
        elif pod.spec.node_name:
            self._bound(uid, pod)
        elif self._flights.update(pod):
            if pod.metadata.deletion_timestamp is not None and not self._flights.is_binding(uid):
                # Nobody needs it any more. Its deletion comes by the watch.
                self._attempts.abandon(uid)
        elif self._suspensions.update(pod):
            if is_terminating(pod):
                self._attempts.questions.forget(uid)
        elif self._cache.node_of(uid) is not None:
            # Already seen bound: a version without a node name is an older one.
            return
        elif self._queue.get(uid) is not None:
            self._queue.update(pod, now=message.now)
        elif pod.spec.scheduler_name in self._profiles:
            self._queue.add(pod, now=message.now)

    def _bound(self, uid: PodUid, pod: Pod) -> None:
        """Take in a pod with a node, whoever put it there."""
        self._unconfirmed.seen(uid)
        self._queue.remove(uid)
        self._attempts.questions.forget(uid)
        if not self._flights.is_binding(uid):
            self._attempts.abandon(uid)
        self._flights.update(pod)
        before = self._cache.place_of(uid)
        try:
            sighting = self._cache.put_bound(self._limiting.placed(pod))
        except QuantityError as error:
            key = f"{pod.metadata.namespace}/{pod.metadata.name}"
            self._out.append(unreadable("pod", key, error))
            return
        if before is not None and before.node != pod.spec.node_name:
            self._overfilled.pod_left(before)
        self._overfilled.pod_seen(pod, sighting, before)

    def _pod_read(self, message: PodRead) -> None:
        """Take what reading a pod has shown of which the watch shows nothing."""
        waiting = self._unconfirmed.of(message)
        if waiting is None:
            return
        uid, pod = message.uid, message.pod
        found = found_in(message, waiting)
        self._meter.resolved(found)
        self._out.append(tell_read(waiting, found))
        if found == "unbound":
            # The API server has the last word, whatever it said before.
            self._unconfirmed.seen(uid)
            self._cache.forget(uid)
        self._pod_changed(PodChanged(message.now, uid, pod))

    def _object_changed(self, message: ObjectChanged) -> None:
        found, objects = message.read(), self._cache.objects
        if found is None:
            objects.remove(message.kind, message.namespace, message.name)
        else:
            objects.put(message.kind, message.namespace, message.name, found)
        self._attempts.look_again(now=message.now)

    # Time and decisions

    def _schedule(self, message: Schedule) -> None:
        self._overfilled.may_tell_users = True
        self._limiting.tell(self._queue)
        self._parked.wake(now=message.now)
        self._batch.run(message.limit, now=message.now)

    def _tick(self, message: Tick) -> None:
        self._parked.tick(now=message.now)
        self._making_room.tick(now=message.now)
        shortening.shorten(self._cache, self._shapes, self._making_room)
        self._meter.measure(self._cache)
        self._shapes.age(now=message.now)
        self._shape_meter.show(self._shapes)
        self._limiting.measure(self._queue)
        self._meter.quarantined(len(self._queue.quarantine))
        self._attempts.expire(now=message.now)
        self._attempts.look_again(now=message.now)
        self._unconfirmed.due(now=message.now)

    def _storage_set_back(self, message: StorageSetBack) -> None:
        """Doubt what the API server had agreed to and no watch has shown."""
        self._making_room.doubt_grants(now=message.now)
        self._unconfirmed.doubt(now=message.now)

    def _limit_caches(self, message: LimitCaches) -> None:
        self._making_room.take_limit(message)
        self._shapes.take_limit(message)

    def _reconfigure(self, message: Reconfigure) -> None:
        self._reconfiguring.take(message)
        limit, queue = message.max_victims_per_minute, policy_of(message.queue)
        self._making_room.reconfigured(limit, now=message.now)
        self._setup = replace(
            self._setup,
            profiles=message.profiles,
            queue=queue,
            pod_limits=message.pod_limits,
            node_limits=message.node_limits,
            max_victims_per_minute=limit,
        )

    def _restore(self, message: Restore) -> None:
        self._reconfiguring.restore(message.checkpoint)
        restore(message.checkpoint, self._parts)
        self._shapes.clear()
        self._overfilled.reset()
