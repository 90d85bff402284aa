"""How attempts end that do not bind their pod: it is parked, or tried again, and that is told.

A pod in flight gives everything back first. The room it was given is taken back only on a definite
failure.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.core.engine.binding.binding_cycle import (
    BindingCycle,
    BindingError,
    TurnedAwayError,
)
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.pods.in_flight import InFlightPod, Phase
from k8s_scheduler.core.engine.telling import plugin_log, tell_exhausted, tell_failure
from k8s_scheduler.core.framework import points
from k8s_scheduler.core.framework.diagnosis import Diagnosis
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.framework.status import SCHEDULER_ERROR, UNSCHEDULABLE, AttemptResult
from k8s_scheduler.core.queue.queued_pod import QueuedPod

# A promise that is to be taken back.
NOWHERE: Final = NodeName("")


class AttemptEnds:
    """Ends attempts."""

    def __init__(self, state: CoreState, binding_cycle: BindingCycle) -> None:
        self._state = state
        self._cache = state.cache
        self._queue = state.queue
        self._meter = state.meter
        self._out = state.out
        self._binding_cycle = binding_cycle

    @contextmanager
    def carefully(self, flight: InFlightPod, *, now: float) -> Iterator[None]:
        """Carry on with a binding cycle; what ends it has undone everything already."""
        try:
            yield
        except TurnedAwayError as error:
            self.turned_away(flight, error.verdict, now=now)
        except (PluginError, BindingError) as error:
            self.flight_failed(flight, error, now=now)

    def broken_off(self, flight: InFlightPod, error: Exception, *, now: float) -> None:
        self._binding_cycle.undo(flight)
        self.flight_failed(flight, error, now=now)

    def flight_failed(self, flight: InFlightPod, error: Exception, *, now: float) -> None:
        seconds = max(0.0, now - flight.started)
        self.failed(flight.queued, error, seconds=seconds, now=now, flight=flight)

    def turned_away(self, flight: InFlightPod, verdict: Verdict, *, now: float) -> None:
        """Park a pod that a plugin refused on the node that was chosen for it."""
        has_waited = flight.uid in self._state.in_flight
        # By other rules it may be let through.
        is_new = flight.generation != self._state.profiles.generation
        news = has_waited and (is_new or flight.changes_seen != self._cache.changes.count)
        if has_waited:
            self._binding_cycle.undo(flight)
        diagnosis = Diagnosis(node_count=1, verdicts=((verdict, 1),))
        self.rejected(
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

    def preempted(self, flight: InFlightPod, *, by_plugin: str, now: float) -> None:
        """Send back a pod in flight whose place a more important one gets."""
        text = "waiting on permit for pod: preempted"
        if flight.phase is Phase.WAITING:
            self._binding_cycle.waited(flight, points.ERROR, now=now)
        else:
            self._binding_cycle.pre_bind_ended(flight, points.ERROR, now=now)
            step = self._state.profiles.of_flight(flight).pre_binds[flight.step]
            text = f'running PreBind plugin "{step.name}": preempted by {by_plugin}'
        self.broken_off(flight, BindingError(text), now=now)

    def rejected(
        self,
        queued: QueuedPod,
        rejectors: tuple[str, ...],
        message: str,
        *,
        seconds: float,
        now: float,
        nominated: NodeName | None,
        flight: InFlightPod | None = None,
        digest: int = 0,
    ) -> None:
        """Park a pod; the `digest` of the message, if that may be renewed without an attempt."""
        is_news = queued.told not in (0, digest)
        queued.told = digest
        self._meter.attempted(AttemptResult.UNSCHEDULABLE, queued.pod.spec.scheduler_name, seconds)
        self._nominate(queued, nominated)
        queued.seen = self._cache.changes.count
        self._queue.return_rejected(queued, rejectors, now=now)
        self._tell(queued, UNSCHEDULABLE, message, nominated, flight=flight, is_news=is_news)

    def failed(
        self,
        queued: QueuedPod,
        error: Exception,
        *,
        seconds: float,
        now: float,
        flight: InFlightPod | None = None,
    ) -> None:
        """Let a pod be tried again: something went wrong."""
        profile = queued.pod.spec.scheduler_name
        if isinstance(error, PluginError):
            self.plugin_failed(queued, error)
        self._meter.attempted(AttemptResult.ERROR, profile, seconds)
        is_news, queued.told = queued.told != 0, 0
        self._nominate(queued, NOWHERE)
        queued.seen = self._cache.changes.count
        tried_again = self._queue.return_failed(queued, now=now)
        self._tell(queued, SCHEDULER_ERROR, str(error), NOWHERE, flight=flight, is_news=is_news)
        if not tried_again:
            self._meter.metrics.attempts_exhausted.labels(profile).inc()
            self._out.append(tell_exhausted(queued.pod, attempt=queued.attempts))

    def _tell(
        self,
        queued: QueuedPod,
        reason: str,
        message: str,
        nominated: NodeName | None,
        *,
        flight: InFlightPod | None,
        is_news: bool,
    ) -> None:
        if not self._state.profiles.serves(queued.pod):
            # No profile has served it since its attempt began.
            self._queue.remove(queued.uid)
            self._cache.end_nomination(queued.uid)
        tell_failure(
            self._out,
            queued.pod,
            attempt=queued.attempts,
            reason=reason,
            message=message,
            nominated=nominated,
            said=None if flight is None else flight.nominated,
            is_news=is_news,
        )

    def plugin_failed(self, queued: QueuedPod, error: PluginError) -> None:
        self._meter.plugin_failed(error.plugin, error.extension_point)
        self._out.append(plugin_log(queued, error))

    def _nominate(self, queued: QueuedPod, node: NodeName | None) -> None:
        """Keep in mind where a pod is promised room; None leaves that as it is."""
        if node is None:
            return
        if node:
            self._cache.nominate(queued.pod, node)
        else:
            self._cache.end_nomination(queued.uid)
