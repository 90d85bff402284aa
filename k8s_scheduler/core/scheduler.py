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
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine import quarantining
from k8s_scheduler.core.engine.allowance import RenewalAllowances
from k8s_scheduler.core.engine.attempt_ends import AttemptEnds
from k8s_scheduler.core.engine.attempts import Attempts, Witness
from k8s_scheduler.core.engine.binding.binding_cycle import BindingCycle
from k8s_scheduler.core.engine.checkpoints import restore, take_checkpoint
from k8s_scheduler.core.engine.checks.holdings import Holdings
from k8s_scheduler.core.engine.checks.judging import Judge, Judgement
from k8s_scheduler.core.engine.checks.overfilled import Overfilled
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.decision.cycle import Cycle
from k8s_scheduler.core.engine.limiting import Limiting
from k8s_scheduler.core.engine.metering.event_labels import EVENTS
from k8s_scheduler.core.engine.metering.limit_meter import LimitMeter
from k8s_scheduler.core.engine.metering.meter import Meter
from k8s_scheduler.core.engine.metering.plugin_timing import Stopwatch
from k8s_scheduler.core.engine.node_messages import NodeMessages
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.engine.parked.parked_pods import ParkedPods
from k8s_scheduler.core.engine.pod_messages import PodMessages
from k8s_scheduler.core.engine.pods.directory import PodDirectory
from k8s_scheduler.core.engine.pods.in_flight import InFlightPods
from k8s_scheduler.core.engine.pods.suspensions import Suspensions
from k8s_scheduler.core.engine.pods.unconfirmed import Unconfirmed
from k8s_scheduler.core.engine.pre_enqueue import PreEnqueueGate
from k8s_scheduler.core.engine.preemption.evictions import Evictions
from k8s_scheduler.core.engine.preemption.post_filter import PostFilter
from k8s_scheduler.core.engine.preemptions import Preemptions
from k8s_scheduler.core.engine.profiles_in_force import ProfilesInForce
from k8s_scheduler.core.engine.reconfiguring import Reconfiguring, policy_of
from k8s_scheduler.core.engine.shapes.meter import ShapeMeter
from k8s_scheduler.core.engine.shapes.shape_cache import ShapeCache
from k8s_scheduler.core.engine.shapes.tally import Tally
from k8s_scheduler.core.engine.shapes.verification import Verifier
from k8s_scheduler.core.engine.victim_limit import VictimLimit
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.profile import compile_profiles
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.messages import incoming
from k8s_scheduler.core.messages.checkpoint import Checkpoint
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
        metrics = metrics or Metrics().scheduler
        meter = Meter(metrics, [p.scheduler_name for p in setup.profiles], perf=perf)
        self._out, self._cache, verdicts = Outbox(), Cache(bounds_requests=True), VerdictTable()
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
            out=self._out,
            count=self._shape_meter.verified,
        )
        self._cycle = Cycle(
            self._cache,
            runtime,
            verdicts,
            watches=meter.watches,
            shapes=shapes,
            verifier=verifier if setup.verified_share else None,
        )
        in_flight = InFlightPods(self._cache)
        profiles = ProfilesInForce(
            setup.profiles,
            lambda profiles: compile_profiles(profiles, setup.plugins),
            in_flight=in_flight,
            stopwatch=Stopwatch(meter, perf),
        )
        limiting = Limiting(
            setup.pod_limits, setup.node_limits, meter=LimitMeter(metrics), out=self._out
        )

        def is_gated(pod: Pod) -> bool:
            # The gate comes later: it asks about preemptions, and these ask where pods wait.
            return gate.is_gated(pod)

        self._queue = SchedulingQueue(
            sort_key=next(iter(profiles.values())).queue_sort.sort_key,
            is_gated=is_gated,
            policy=setup.queue,
            observer=meter,
            is_over_limit=limiting.is_over,
        )
        suspensions = Suspensions(setup.extenders, self._queue, self._out)
        state = self._state = CoreState(
            cache=self._cache,
            queue=self._queue,
            in_flight=in_flight,
            suspensions=suspensions,
            unconfirmed=Unconfirmed(self._cache, self._out),
            preemptions=Preemptions(),
            pods=PodDirectory(self._cache, self._queue, in_flight, suspensions),
            profiles=profiles,
            limiting=limiting,
            victim_limit=VictimLimit(setup.max_victims_per_minute),
            renewals=RenewalAllowances(),
            sampling=self._cycle.sampling,
            verdicts=verdicts,
            out=self._out,
            meter=meter,
        )
        meter.watch_bindings(in_flight.__len__)
        self._binding_cycle = BindingCycle(state, runtime)
        ends = AttemptEnds(state, self._binding_cycle)
        self._evictions = Evictions(state, ends)
        gate = PreEnqueueGate(state, self._evictions)
        self._post_filter = PostFilter(
            state, runtime, nominees=self._cycle.nominees, evictions=self._evictions
        )
        self._parked = ParkedPods(state, runtime, cycle=self._cycle, post_filter=self._post_filter)
        self._attempts = Attempts(
            state,
            self._cycle,
            self._binding_cycle,
            ends=ends,
            post_filter=self._post_filter,
            witness=witness,
        )
        self._overfilled = Overfilled(state)
        self._node_messages = NodeMessages(state, self._overfilled)
        self._pod_messages = PodMessages(
            state, self._binding_cycle, evictions=self._evictions, overfilled=self._overfilled
        )
        self._reconfiguring = Reconfiguring(
            state, self._binding_cycle, shapes=self._shapes, parked=self._parked
        )
        self._handlers = self._handlers_by_type()

    # Messages

    def handle(self, message: incoming.Message) -> list[Instruction]:
        """Take one message; return what is to be done about it."""
        event_of = EVENTS.get(type(message))
        event = "" if event_of is None else event_of(message, self._state.pods)
        started = self._state.meter.perf() if event else 0.0
        self._post_filter.begin_message()
        self._handlers[type(message)](message)
        if event:
            self._state.meter.handled(event, self._state.meter.perf() - started)
        self._attempts.settle(now=message.now)
        return self._out.drain()

    def _handlers_by_type(self) -> dict[type[incoming.Message], Handler]:
        return {
            incoming.PodChanged: self._pod_messages.changed,
            incoming.NodeChanged: self._node_messages.changed,
            incoming.ObjectChanged: self._object_changed,
            incoming.Schedule: self._schedule,
            incoming.BindResult: self._attempts.take_result,
            incoming.RequestResult: self._request_result,
            incoming.ExtenderAnswer: self._attempts.take_opinion,
            incoming.PodRead: self._pod_messages.read,
            incoming.Recount: self._node_messages.recount,
            incoming.HoldBack: lambda message: self._queue.hold_back(message.namespaces),
            incoming.StorageSetBack: self._storage_set_back,
            incoming.LimitCaches: self._limit_caches,
            incoming.Tick: self._tick,
            incoming.Quarantine: lambda message: quarantining.begin(message, state=self._state),
            incoming.Reconfigure: self._reconfigure,
            incoming.Restore: self._restore,
        }

    # What the shell may ask

    @property
    def has_work(self) -> bool:
        """Return whether `Schedule` would find something to do."""
        queue = self._queue
        return queue.has_candidates or self._parked.is_due or self._state.limiting.has_untold

    @property
    def next_quarantined(self) -> PodUid | None:
        """Return the pod of the quarantine that `Schedule` would try now; None for any other."""
        return self._queue.next_quarantined

    @property
    def binding_count(self) -> int:
        return len(self._state.in_flight)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of objects, besides pods and nodes, that the profiles depend on.

        After a change of the configuration also those that pods on their way still need.
        """
        return self._state.profiles.kinds

    @property
    def setup(self) -> Setup:
        """Return what a core has to be made from to be restored to a checkpoint taken now."""
        return replace(
            self._setup,
            profiles=self._state.profiles.resolved,
            pod_limits=self._state.limiting.pod_limits,
            node_limits=self._state.limiting.node_limits,
            max_victims_per_minute=self._state.victim_limit.per_minute,
        )

    @property
    def scheduler_names(self) -> frozenset[str]:
        return frozenset(self._state.profiles)

    @property
    def tally(self) -> Tally:
        return self._shapes.tally

    def judge(self, pod: Pod, *, makes_room: bool = True) -> Judgement:
        """Return what this scheduler would think of a pod now; nothing changes.

        Raises KeyError if no profile serves the pod, PluginError and QuantityError as a cycle does,
        OverLimitError if it would not be tried.
        """
        self._state.limiting.check(pod)
        profile = self._state.profiles[pod.spec.scheduler_name]
        return self._judge.judge(profile, pod, makes_room=makes_room)

    @property
    def holdings(self) -> Holdings:
        """Return a look at the state, to be compared or printed."""
        return Holdings(self._state)

    def node_of(self, uid: PodUid) -> NodeName | None:
        return self._cache.node_of(uid)

    def checkpoint(self) -> Checkpoint:
        """Return the whole state as data; it shares the objects and copies none."""
        self._parked.rewind()
        self._post_filter.begin_anew()
        return take_checkpoint(self._state)

    def snapshot(self) -> Checkpoint:
        """Return the state as a decision sees it now, to be looked at; nothing changes.

        It is no checkpoint: what is half done is not part of it.
        """
        return take_checkpoint(self._state)

    # Objects, time and decisions

    def _object_changed(self, message: incoming.ObjectChanged) -> None:
        found, objects = message.read(), self._cache.objects
        if found is None:
            objects.remove(message.kind, message.namespace, message.name)
        else:
            objects.put(message.kind, message.namespace, message.name, found)
        self._attempts.look_again(now=message.now)

    def _schedule(self, message: incoming.Schedule) -> None:
        self._overfilled.may_tell_users = True
        self._state.limiting.tell(self._queue)
        self._parked.wake(now=message.now)
        self._attempts.run(message.limit, now=message.now)

    def _tick(self, message: incoming.Tick) -> None:
        self._parked.tick(now=message.now)
        self._post_filter.tick(now=message.now)
        self._shorten()
        self._state.meter.measure(self._cache)
        self._shapes.age(now=message.now)
        self._shape_meter.show(self._shapes)
        self._state.limiting.measure(self._queue)
        self._state.meter.metrics.quarantined_pods.set(len(self._queue.quarantine))
        self._attempts.expire(now=message.now)
        self._attempts.look_again(now=message.now)
        self._state.unconfirmed.due(now=message.now)

    def _shorten(self) -> None:
        """Give back rows of nodes that are gone, and with them all that is kept by row.

        A table that becomes shorter is as good as a new one: the state forgets its log of facts, by
        which everything kept finds that it has to be made anew. It is dropped here because there is
        no other use for the memory. Decisions do not depend on any of it.
        """
        if self._cache.shorten():
            self._shapes.clear()
            self._post_filter.searches.forget_rows()

    def _request_result(self, message: incoming.RequestResult) -> None:
        if not self._evictions.take_answer(message):
            self._attempts.take_answer(message)

    def _storage_set_back(self, message: incoming.StorageSetBack) -> None:
        """Doubt what the API server had agreed to and no watch has shown."""
        self._evictions.doubt_grants(now=message.now)
        self._state.unconfirmed.doubt(now=message.now)

    def _limit_caches(self, message: incoming.LimitCaches) -> None:
        self._post_filter.take_limit(message)
        self._shapes.take_limit(message)

    def _reconfigure(self, message: incoming.Reconfigure) -> None:
        self._reconfiguring.take(message)
        self._post_filter.reconfigured(message.max_victims_per_minute, now=message.now)
        self._setup = replace(self._setup, queue=policy_of(message.queue))

    def _restore(self, message: incoming.Restore) -> None:
        self._reconfiguring.restore(message.checkpoint)
        restore(message.checkpoint, self._state)
        self._shapes.clear()
        self._overfilled.reset()
