"""One attempt at one pod, from the queue to its end.

        pop ─▶ decide ─┬─ a node ─▶ binding cycle ─▶ Bind ──▶ ─────────┬─ bound ─▶ Scheduled
                       │                │                              └─ failed ─▶ undo ─▶ backoff
                       │                └─ turned away ─▶ FailedScheduling, parked
                       ├─ no node ─▶ make room? ─▶ FailedScheduling, parked until an event helps
                       └─ error ───▶ FailedScheduling, tried again after its backoff

The room a pod was given is taken back only on a definite failure.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from k8s_scheduler.api.meta import key_of
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.engine.attempt_ends import AttemptEnds
from k8s_scheduler.core.engine.binding.binding_cycle import (
    BindingCycle,
    BindingError,
    check_binder,
)
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.decision.cycle import Cycle, NoNode, Placement
from k8s_scheduler.core.engine.pods.in_flight import InFlightPod, Phase
from k8s_scheduler.core.engine.pods.suspensions import ExtenderError, Suspension
from k8s_scheduler.core.engine.preemption.post_filter import PostFilter, rejection
from k8s_scheduler.core.engine.preemption.searches import Search
from k8s_scheduler.core.engine.telling import digest_of, tell_success, warn
from k8s_scheduler.core.framework import points
from k8s_scheduler.core.framework.extenders import Opinion
from k8s_scheduler.core.framework.plugin_errors import PluginError, blaming
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.status import AttemptResult
from k8s_scheduler.core.messages.incoming import BindResult, ExtenderAnswer, RequestResult
from k8s_scheduler.core.queue.queued_pod import QueuedPod

TOO_LATE: Final = "context deadline exceeded"
# Told of a pod that is about to be decided for.
Witness: TypeAlias = Callable[[QueuedPod], None]


class Attempts:
    """Runs attempts and takes in their results."""

    def __init__(
        self,
        state: CoreState,
        cycle: Cycle,
        binding_cycle: BindingCycle,
        *,
        ends: AttemptEnds,
        post_filter: PostFilter,
        witness: Witness | None = None,
    ) -> None:
        self._state = state
        self._cache = state.cache
        self._queue = state.queue
        self._in_flight = state.in_flight
        self._suspensions = state.suspensions
        self._meter = state.meter
        self._out = state.out
        self._cycle = cycle
        self._binding_cycle = binding_cycle
        self._ends = ends
        self._post_filter = post_filter
        self._searches = post_filter.searches
        self._witness = witness

    def run(self, limit: int, *, now: float) -> None:
        """Try so many pods; fewer if a search for room has done all that one message may.

        A pod of the quarantine is tried alone, and only when no other can be tried.
        """
        tried = 0
        while tried < limit and (queued := self._post_filter.turns.next()) is not None:
            self.attempt(queued, now=now)
            tried += 1
            if self._post_filter.search_work.is_spent:
                return
        if not tried and limit and self._queue.next_quarantined is not None:
            alone = self._queue.pop_quarantined()
            if alone is not None:
                self.attempt(alone, now=now)

    # An attempt begins

    def attempt(self, queued: QueuedPod, *, now: float) -> None:
        """Try to place a pod that was just popped."""
        pod = queued.pod
        if pod.metadata.deletion_timestamp is not None:
            # It is on its way out: nothing to schedule. Its deletion comes by the watch.
            note = f"skip schedule deleting pod: {key_of(pod.metadata)}"
            self._out.append(warn(pod, attempt=queued.attempts, note=note))
            return
        profile = self._state.profiles.of(queued)
        opinion = self._searches.opinion_of(profile, queued)
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
        started = self._meter.perf()
        try:
            decision = self._cycle.decide(profile, queued, opinion)
        except (PluginError, QuantityError) as error:
            seconds = self._decided(started)
            self._ends.failed(queued, error, seconds=seconds, now=now)
            return
        if isinstance(decision, NoNode):
            self._unplaced(queued, profile, decision, started=started, now=now, opinion=opinion)
            return
        self._searches.end(queued.uid)
        seconds = self._decided(started)
        try:
            check_binder(profile, queued)
        except (PluginError, BindingError) as error:
            self._ends.failed(queued, error, seconds=seconds, now=now)
        else:
            self._bind(queued, decision, now=now)

    def _decided(self, started: float) -> float:
        seconds = self._meter.perf() - started
        self._meter.decided(seconds)
        return seconds

    def _bind(self, queued: QueuedPod, placement: Placement, *, now: float) -> None:
        flight = InFlightPod(
            queued,
            self._cache.nodes.name_of(placement.row),
            started=now,
            state=placement.state,
            changes_seen=self._cache.changes.count,
            generation=self._state.profiles.generation,
        )
        with self._ends.carefully(flight, now=now):
            self._binding_cycle.begin(flight, now=now)

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
        room = self._post_filter.make(profile, queued, found, now=now)
        if isinstance(room, Search):
            self._carry_on_later(queued, found, room, opinion)
            return
        seconds = self._decided(started - room.earlier_seconds)
        message, rejectors = rejection(found, room), found.diagnosis.rejectors
        by_filters = profile.filter_names.issuperset(rejectors)
        if room.error is not None:
            self._ends.plugin_failed(queued, room.error)
        self._ends.rejected(
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
        self._post_filter.start(queued, room, now=now)
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

    # Extenders

    def _suspend(
        self, queued: QueuedPod, profile: Profile, extenders: tuple[str, ...], *, now: float
    ) -> None:
        """Ask extenders first; while another decision of the profile waits for them, wait too."""
        if self._suspensions.is_busy(profile.scheduler_name):
            self._queue.set_aside(queued)
            return
        started = self._meter.perf()
        try:
            found = self._cycle.look(profile, queued)
        except (PluginError, QuantityError) as error:
            seconds = self._decided(started)
            self._ends.failed(queued, error, seconds=seconds, now=now)
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
            self._suspensions.release(suspension.queued.pod.spec.scheduler_name)
            seconds = max(0.0, answer.now - suspension.started)
            self._ends.failed(suspension.queued, error, seconds=seconds, now=answer.now)
            return
        if question is None:
            self._resume(suspension, now=answer.now)
        else:
            self._out.append(question)

    def _resume(self, suspension: Suspension, *, now: float) -> None:
        """Decide on the state as it is now, within what extenders allowed."""
        queued = suspension.queued
        profile = self._state.profiles.of(queued)
        news = suspension.changes_seen != self._cache.changes.count
        self._suspensions.release(profile.scheduler_name)
        self._decide(queued, profile, suspension.opinion, now=now)
        search = self._searches.unfinished(queued.uid)
        if search is not None and queued.uid in self._queue.line:
            search.changes_seen = suspension.changes_seen
        elif news and queued.uid in self._queue.parked:
            # While extenders were asked something happened that might have helped: nodes that came
            # to fit meanwhile were not asked about, and others may have seen the change already.
            self._queue.wake(queued, "ScheduleAttemptFailure", now=now)

    # An attempt goes on

    def take_answer(self, result: RequestResult) -> None:
        """Let a pod go on that waited for a write; other attempts' answers are dropped."""
        flight = self._in_flight.of(result)
        if flight is not None and result.request in flight.requests:
            with self._ends.carefully(flight, now=result.now):
                self._binding_cycle.answered(flight, result)

    def settle(self, *, now: float) -> None:
        while words := self._binding_cycle.take_words():
            for flight, verdict in words:
                status = points.SUCCESS if verdict is None else points.UNSCHEDULABLE
                self._binding_cycle.waited(flight, status, now=now)
                if verdict is not None:
                    self._ends.turned_away(flight, verdict, now=now)
                else:
                    with self._ends.carefully(flight, now=now):
                        self._binding_cycle.go_on(flight, now=now)

    def look_again(self, *, now: float) -> None:
        """See whether objects are now as pods that are pre-binding wait for."""
        for flight in self._in_flight.to_ask():
            with self._ends.carefully(flight, now=now):
                self._binding_cycle.look_again(flight, now=now)

    def expire(self, *, now: float) -> None:
        self._binding_cycle.expire(now=now)
        for flight in self._binding_cycle.overdue(now=now):
            self._binding_cycle.pre_bind_ended(flight, points.ERROR, now=now)
            self._ends.broken_off(
                flight, BindingError(f"{': '.join(flight.errand)}: {TOO_LATE}"), now=now
            )
        self.settle(now=now)

    # An attempt ends

    def take_result(self, result: BindResult) -> None:
        """End the attempt that a binding belonged to; other attempts' results are dropped."""
        flight = self._in_flight.of(result)
        if flight is None or flight.phase is not Phase.BINDING:
            return
        queued = flight.queued
        seconds = max(0.0, result.now - flight.started)
        watch = self._meter.watches[queued.pod.spec.scheduler_name]
        status = points.SUCCESS if result.bound else points.ERROR
        watch.took(points.BIND, status, max(0.0, result.now - flight.since))
        if result.bound:
            self._in_flight.end(flight.uid)
            self._queue.giving_way.succeeded(queued.pod.metadata.namespace)
            self._state.unconfirmed.bound(flight, now=result.now)
            self._meter.attempted(AttemptResult.SCHEDULED, queued.pod.spec.scheduler_name, seconds)
            self._meter.bound(queued, now=result.now)
            if queued.was_flushed:
                self._meter.bound_after_flush()
            self._out.append(tell_success(queued.pod, attempt=queued.attempts, node=flight.node))
            self._after_binding(flight)
            return
        self._binding_cycle.undo(flight)
        if queued.pod.spec.node_name:
            # Another scheduler bound it meanwhile: it is placed, only not by us.
            self._meter.attempted(AttemptResult.ERROR, queued.pod.spec.scheduler_name, seconds)
            self._out.append(warn(queued.pod, attempt=queued.attempts, note=result.message))
            return
        self._ends.flight_failed(flight, BindingError(result.message), now=result.now)

    def _after_binding(self, flight: InFlightPod) -> None:
        watch = self._meter.watches[flight.pod.spec.scheduler_name]
        started = watch.now()
        for name, plugin in self._state.profiles.of_flight(flight).post_binds:
            try:
                with blaming(name, "PostBind"):
                    plugin.post_bind(flight.state, flight.pod, flight.node)
            except PluginError as error:
                # The pod is bound: there is nothing left to fail but the plugin.
                self._ends.plugin_failed(flight.queued, error)
        watch.ended(points.POST_BIND, points.SUCCESS, started)
