"""One attempt at one pod, from the queue to its end.

        pop ─▶ decide ─┬─ a node ─▶ departure ─▶ Bind ──▶ (in flight) ─┬─ bound ─▶ Scheduled
                       │                │                              └─ failed ─▶ undo ─▶ backoff
                       │                └─ turned away ─▶ FailedScheduling, parked
                       ├─ no node ─▶ make room? ─▶ FailedScheduling, parked until an event helps
                       └─ error ───▶ FailedScheduling, tried again after its backoff

The room a pod was given is taken back only on a definite failure.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.engine.binding.binding_cycle import (
    BindingError,
    Departure,
    TurnedAwayError,
    check_binder,
)
from k8s_scheduler.core.engine.binding.unconfirmed import Unconfirmed
from k8s_scheduler.core.engine.decision.cycle import Cycle, NoNode, Placement
from k8s_scheduler.core.engine.decision.open_questions import OpenQuestions
from k8s_scheduler.core.engine.decision.suspensions import ExtenderError, Suspension, Suspensions
from k8s_scheduler.core.engine.failure import (
    digest_of,
    plugin_log,
    tell_exhausted,
    tell_failure,
    warn,
)
from k8s_scheduler.core.engine.in_flight import Flight, Flights, Phase
from k8s_scheduler.core.engine.metering.meter import Meter
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.engine.preemption.post_filter import MakingRoom, rejection
from k8s_scheduler.core.engine.preemption.searches import Search
from k8s_scheduler.core.engine.success import tell_success
from k8s_scheduler.core.engine.timed_plugins import TimedProfiles
from k8s_scheduler.core.framework import points
from k8s_scheduler.core.framework.diagnosis import Diagnosis
from k8s_scheduler.core.framework.extenders import Opinion
from k8s_scheduler.core.framework.plugin_errors import PluginError, blaming
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.framework.status import SCHEDULER_ERROR, UNSCHEDULABLE, AttemptResult
from k8s_scheduler.core.messages.incoming import (
    BindResult,
    ExtenderAnswer,
    RequestResult,
)
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.state.protocols import Assuming

TOO_LATE = "context deadline exceeded"
# A promise that is to be taken back.
NOWHERE = NodeName("")
# Told of a pod that is about to be decided for.
Witness: TypeAlias = Callable[[QueuedPod], None]


class Attempts:
    """Runs attempts and takes in their results."""

    def __init__(
        self,
        *,
        cache: Assuming,
        queue: SchedulingQueue,
        flights: Flights,
        cycle: Cycle,
        departure: Departure,
        making_room: MakingRoom,
        suspensions: Suspensions,
        unconfirmed: Unconfirmed,
        timed: TimedProfiles,
        meter: Meter,
        perf: Callable[[], float],
        out: Outbox,
        witness: Witness | None = None,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._flights = flights
        self._cycle = cycle
        self._departure = departure
        self._making_room = making_room
        self._suspensions = suspensions
        self.questions = OpenQuestions(suspensions, queue)
        self._unconfirmed = unconfirmed
        self._timed = timed
        self._meter = meter
        self._perf = perf
        self._out = out
        self._witness = witness
        making_room.connect(self._interrupt)

    # An attempt begins

    def attempt(self, queued: QueuedPod, *, now: float) -> None:
        """Try to place a pod that was just popped."""
        pod = queued.pod
        if pod.metadata.deletion_timestamp is not None:
            # It is on its way out: nothing to schedule. Its deletion comes by the watch.
            key = f"{pod.metadata.namespace}/{pod.metadata.name}"
            self._out.append(
                warn(pod, attempt=queued.attempts, note=f"skip schedule deleting pod: {key}")
            )
            return
        profile = self._timed.of(queued)
        opinion = self._making_room.searches.opinion_of(profile, queued)
        extenders = self._suspensions.interested(pod)
        if opinion is not None:
            self._decide(queued, profile, opinion, now=now)
        elif extenders:
            self._suspend(queued, profile, extenders, now=now)
        else:
            self._decide(queued, profile, now=now)

    def _decide(
        self, queued: QueuedPod, profile: Profile, opinion: Opinion | None = None, *, now: float
    ) -> None:
        if self._witness is not None:
            self._witness(queued)
        started = self._perf()
        try:
            decision = self._cycle.decide(profile, queued, opinion)
        except (PluginError, QuantityError) as error:
            seconds = self._decided(started)
            self._failed(queued, error, seconds=seconds, now=now)
            return
        if isinstance(decision, NoNode):
            self._unplaced(queued, profile, decision, started=started, now=now, opinion=opinion)
            return
        self._making_room.searches.end(queued.uid)
        seconds = self._decided(started)
        try:
            check_binder(profile, queued)
        except (PluginError, BindingError) as error:
            self._failed(queued, error, seconds=seconds, now=now)
        else:
            self._depart(queued, decision, now=now)

    def _decided(self, started: float) -> float:
        """Observe how long a decision took, making room included, and return it."""
        seconds = self._perf() - started
        self._meter.decided(seconds)
        return seconds

    # Extenders

    def _suspend(
        self, queued: QueuedPod, profile: Profile, extenders: tuple[str, ...], *, now: float
    ) -> None:
        """Ask extenders first; while another decision of the profile waits for them, wait too."""
        if self._suspensions.is_busy(profile.scheduler_name):
            self._queue.set_aside(queued)
            return
        started = self._perf()
        try:
            found = self._cycle.look(profile, queued)
        except (PluginError, QuantityError) as error:
            seconds = self._decided(started)
            self._failed(queued, error, seconds=seconds, now=now)
            return
        if isinstance(found, NoNode):
            self._unplaced(queued, profile, found, started=started, now=now)
            return
        suspension = Suspension(
            queued, extenders, started=now, changes_seen=self._cache.changes.count, allowed=found
        )
        question = self._suspensions.start(suspension)
        if question is None:
            self._resume(suspension, now=now)
        else:
            self._out.append(question)

    def take_opinion(self, answer: ExtenderAnswer) -> None:
        """Go on with a suspended decision; other attempts' answers are dropped."""
        suspension = self._suspensions.suspended(answer)
        if suspension is None:
            return
        try:
            question = self._suspensions.answered(suspension, answer)
        except ExtenderError as error:
            self.questions.release(suspension.queued.pod.spec.scheduler_name)
            seconds = max(0.0, answer.now - suspension.started)
            self._failed(suspension.queued, error, seconds=seconds, now=answer.now)
            return
        if question is None:
            self._resume(suspension, now=answer.now)
        else:
            self._out.append(question)

    def _resume(self, suspension: Suspension, *, now: float) -> None:
        """Decide on the state as it is now, within what extenders allowed."""
        queued = suspension.queued
        profile = self._timed.of(queued)
        news = suspension.changes_seen != self._cache.changes.count
        self.questions.release(profile.scheduler_name)
        self._decide(queued, profile, suspension.opinion, now=now)
        search = self._making_room.searches.unfinished(queued.uid)
        if search is not None and queued.uid in self._queue.line:
            search.changes_seen = suspension.changes_seen
        elif news and queued.uid in self._queue.parked:
            # While extenders were asked something happened that might have helped: nodes that came
            # to fit meanwhile were not asked about, and others may have seen the change already.
            self._queue.wake(queued, "ScheduleAttemptFailure", now=now)

    # An attempt departs

    def _depart(self, queued: QueuedPod, placement: Placement, *, now: float) -> None:
        flight = Flight(
            queued,
            self._cache.nodes.name_of(placement.row),
            started=now,
            state=placement.state,
            changes_seen=self._cache.changes.count,
            generation=self._timed.generation,
        )
        with self._carefully(flight, now=now):
            self._departure.begin(flight, now=now)

    # An attempt goes on

    def take_answer(self, result: RequestResult) -> None:
        """Let a pod go on that waited for a write; other attempts' answers are dropped."""
        if self._making_room.owns(result):
            self._making_room.answered(result)
            return
        flight = self._flights.of(result)
        if flight is not None and result.request in flight.requests:
            with self._carefully(flight, now=result.now):
                self._departure.answered(flight, result)

    def settle(self, *, now: float) -> None:
        """Do what plugins have said about waiting pods."""
        while words := self._departure.take_words():
            for flight, verdict in words:
                status = points.SUCCESS if verdict is None else points.UNSCHEDULABLE
                self._departure.waited(flight, status, now=now)
                if verdict is not None:
                    self._turned_away(flight, verdict, now=now)
                else:
                    with self._carefully(flight, now=now):
                        self._departure.go_on(flight, now=now)

    def look_again(self, *, now: float) -> None:
        """See whether objects are now as pods that are pre-binding wait for."""
        for flight in self._flights.to_ask():
            with self._carefully(flight, now=now):
                self._departure.look_again(flight, now=now)

    def expire(self, *, now: float) -> None:
        """End what has waited for too long."""
        self._departure.expire(now=now)
        for flight in self._departure.overdue(now=now):
            self._departure.pre_bind_ended(flight, points.ERROR, now=now)
            self._broken_off(
                flight, BindingError(f"{': '.join(flight.errand)}: {TOO_LATE}"), now=now
            )
        self.settle(now=now)

    def abandon(self, uid: PodUid) -> None:
        """Give back what a pod on its way has taken; it is gone, or somebody else has bound it."""
        flight = self._flights.get(uid)
        if flight is not None:
            self._departure.undo(flight)

    # An attempt ends

    def take_result(self, result: BindResult) -> None:
        """End the attempt that a binding belonged to; other attempts' results are dropped."""
        flight = self._flights.of(result)
        if flight is None or flight.phase is not Phase.BINDING:
            return
        queued = flight.queued
        seconds = max(0.0, result.now - flight.started)
        watch = self._meter.watches[queued.pod.spec.scheduler_name]
        status = points.SUCCESS if result.bound else points.ERROR
        watch.took(points.BIND, status, max(0.0, result.now - flight.since))
        if result.bound:
            self._flights.end(flight.uid)
            self._queue.giving_way.succeeded(queued.pod.metadata.namespace)
            self._unconfirmed.bound(flight, now=result.now)
            self._meter.attempted(AttemptResult.SCHEDULED, queued.pod.spec.scheduler_name, seconds)
            self._meter.bound(queued, now=result.now)
            if queued.was_flushed:
                self._meter.bound_after_flush()
            self._out.append(tell_success(queued.pod, attempt=queued.attempts, node=flight.node))
            self._after_binding(flight)
            return
        self._departure.undo(flight)
        if queued.pod.spec.node_name:
            # Somebody else bound it meanwhile: it is placed, only not by us.
            self._meter.attempted(AttemptResult.ERROR, queued.pod.spec.scheduler_name, seconds)
            self._out.append(warn(queued.pod, attempt=queued.attempts, note=result.message))
            return
        self._flight_failed(flight, BindingError(result.message), now=result.now)

    def _after_binding(self, flight: Flight) -> None:
        watch = self._meter.watches[flight.pod.spec.scheduler_name]
        started = watch.now()
        for name, plugin in self._timed.of_flight(flight).post_binds:
            try:
                with blaming(name, "PostBind"):
                    plugin.post_bind(flight.state, flight.pod, flight.node)
            except PluginError as error:
                # The pod is bound: there is nothing left to fail but the plugin.
                self._plugin_failed(flight.queued, error)
        watch.ended(points.POST_BIND, points.SUCCESS, started)

    # Ends of several kinds

    @contextmanager
    def _carefully(self, flight: Flight, *, now: float) -> Iterator[None]:
        """Carry on with a flight; whatever ends it has undone everything already."""
        try:
            yield
        except TurnedAwayError as error:
            self._turned_away(flight, error.verdict, now=now)
        except (PluginError, BindingError) as error:
            self._flight_failed(flight, error, now=now)

    def _broken_off(self, flight: Flight, error: Exception, *, now: float) -> None:
        self._departure.undo(flight)
        self._flight_failed(flight, error, now=now)

    def _flight_failed(self, flight: Flight, error: Exception, *, now: float) -> None:
        seconds = max(0.0, now - flight.started)
        self._failed(flight.queued, error, seconds=seconds, now=now, flight=flight)

    def _turned_away(self, flight: Flight, verdict: Verdict, *, now: float) -> None:
        """Park a pod that a plugin refused on the node that was chosen for it."""
        has_waited = flight.uid in self._flights
        # By other rules it may be let through.
        is_new = flight.generation != self._timed.generation
        news = has_waited and (is_new or flight.changes_seen != self._cache.changes.count)
        if has_waited:
            self._departure.undo(flight)
        diagnosis = Diagnosis(node_count=1, verdicts=((verdict, 1),))
        self._rejected(
            flight.queued,
            diagnosis.rejectors,
            diagnosis.message(),
            seconds=max(0.0, now - flight.started),
            now=now,
            nominated=NOWHERE,
            flight=flight,
        )
        if news and flight.uid in self._queue.parked:
            # While it waited something happened that might have helped: it did not see it.
            self._queue.wake(flight.queued, "ScheduleAttemptFailure", now=now)

    def _unplaced(
        self,
        queued: QueuedPod,
        profile: Profile,
        found: NoNode,
        *,
        started: float,
        now: float,
        opinion: Opinion | None = None,
    ) -> None:
        room = self._making_room.make(profile, queued, found, now=now)
        if isinstance(room, Search):
            self._carry_on_later(queued, found, room, opinion)
            return
        seconds = self._decided(started - room.earlier_seconds)
        message, rejectors = rejection(found, room), found.diagnosis.rejectors
        by_filters = profile.filter_names.issuperset(rejectors)
        if room.error is not None:
            self._plugin_failed(queued, room.error)
        self._rejected(
            queued,
            rejectors,
            message,
            seconds=seconds,
            now=now,
            nominated=room.nominated,
            digest=digest_of(message) if by_filters else 0,
        )
        is_promised = self._cache.nominations.node_of(queued.uid) is not None
        parked = self._queue.parked
        is_parked = queued.uid in parked and not is_promised
        if by_filters and is_parked and parked.speaks_for_peers(queued):
            # What holds it back holds back all that are like it.
            parked.peers_of(queued).found(message, queued.told, rejectors, self._cache.moment)
        self._making_room.start(queued, room, now=now)
        if room.is_outdated and not room.nominated and queued.uid in self._queue.parked:
            # Something that happened while it was searched for may have helped, and was not seen.
            self._queue.wake(queued, "ScheduleAttemptFailure", now=now)

    def _carry_on_later(
        self, queued: QueuedPod, found: NoNode, search: Search, opinion: Opinion | None
    ) -> None:
        """Let a pod wait for the next step of its search; nothing is told before it has ended."""
        search.opinion = opinion
        queued.seen = self._cache.changes.count
        self._queue.stand_in_line(queued, found.diagnosis.rejectors)

    def _interrupt(self, flight: Flight, plugin: str, now: float) -> None:
        """Send back a pod on its way whose place a more important one gets."""
        text = "waiting on permit for pod: preempted"
        if flight.phase is Phase.WAITING:
            self._departure.waited(flight, points.ERROR, now=now)
        else:
            self._departure.pre_bind_ended(flight, points.ERROR, now=now)
            step = self._timed.of_flight(flight).pre_binds[flight.step]
            text = f'running PreBind plugin "{step.name}": preempted by {plugin}'
        self._broken_off(flight, BindingError(text), now=now)

    def _rejected(
        self,
        queued: QueuedPod,
        rejectors: tuple[str, ...],
        message: str,
        *,
        seconds: float,
        now: float,
        nominated: NodeName | None,
        flight: Flight | None = None,
        digest: int = 0,
    ) -> None:
        """Park a pod; the `digest` of the message, if that may be renewed without an attempt."""
        pod = queued.pod
        is_news = queued.told not in (0, digest)
        queued.told = digest
        self._meter.attempted(AttemptResult.UNSCHEDULABLE, pod.spec.scheduler_name, seconds)
        self._nominate(queued, nominated)
        queued.seen = self._cache.changes.count
        self._queue.return_rejected(queued, rejectors, now=now)
        self._let_go(queued)
        tell_failure(
            self._out,
            pod,
            attempt=queued.attempts,
            reason=UNSCHEDULABLE,
            message=message,
            nominated=nominated,
            said=None if flight is None else flight.nominated,
            is_news=is_news,
        )

    def _failed(
        self,
        queued: QueuedPod,
        error: Exception,
        *,
        seconds: float,
        now: float,
        flight: Flight | None = None,
    ) -> None:
        pod = queued.pod
        if isinstance(error, PluginError):
            self._plugin_failed(queued, error)
        self._meter.attempted(AttemptResult.ERROR, pod.spec.scheduler_name, seconds)
        is_news, queued.told = queued.told != 0, 0
        self._nominate(queued, NOWHERE)
        queued.seen = self._cache.changes.count
        tried_again = self._queue.return_failed(queued, now=now)
        self._let_go(queued)
        tell_failure(
            self._out,
            pod,
            attempt=queued.attempts,
            reason=SCHEDULER_ERROR,
            message=str(error),
            nominated=NOWHERE,
            said=None if flight is None else flight.nominated,
            is_news=is_news,
        )
        if not tried_again:
            self._meter.exhausted(pod.spec.scheduler_name)
            self._out.append(tell_exhausted(pod, attempt=queued.attempts))

    def _plugin_failed(self, queued: QueuedPod, error: PluginError) -> None:
        self._meter.plugin_failed(error.plugin, error.extension_point)
        self._out.append(plugin_log(queued, error))

    def _let_go(self, queued: QueuedPod) -> None:
        """Keep no pod in the queue that no profile serves since it set out."""
        if not self._timed.serves(queued.pod):
            self._queue.remove(queued.uid)
            self._cache.end_nomination(queued.uid)

    def _nominate(self, queued: QueuedPod, node: NodeName | None) -> None:
        """Keep in mind where a pod is promised room; None leaves that as it is."""
        if node is None:
            return
        if node:
            self._cache.nominate(queued.pod, node)
        else:
            self._cache.end_nomination(queued.uid)
