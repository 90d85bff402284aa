"""One attempt at one pod, from the queue to its end.

        pop ─▶ decide ─┬─ a node ─▶ assume ─▶ Bind ──▶ (in flight) ─┬─ bound ─▶ Scheduled
                       │                                            └─ failed ─▶ forget ─▶ backoff
                       ├─ no node ─▶ FailedScheduling, parked until an event helps
                       └─ error ───▶ FailedScheduling, tried again after its backoff

The room a pod was given is taken back only on a definite failure.
"""

from collections.abc import Callable, Iterator, Mapping

from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.engine.binding import Flight, Flights, tell_success
from k8s_scheduler.core.engine.cycle import Cycle, Placement
from k8s_scheduler.core.engine.failure import tell_failure, warn
from k8s_scheduler.core.engine.metering import Meter
from k8s_scheduler.core.framework.diagnosis import Diagnosis
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.runtime import PluginError
from k8s_scheduler.core.framework.status import SCHEDULER_ERROR, UNSCHEDULABLE, AttemptResult
from k8s_scheduler.core.messages.incoming import BindResult
from k8s_scheduler.core.messages.outgoing import Instruction, Log, Severity
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.state.cache import Cache

NO_BINDER = "no bind plugin of the profile binds this pod"


class Attempts:
    """Runs attempts and takes in their results."""

    def __init__(
        self,
        *,
        cache: Cache,
        queue: SchedulingQueue,
        flights: Flights,
        cycle: Cycle,
        profiles: Mapping[str, Profile],
        meter: Meter,
        perf: Callable[[], float],
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._flights = flights
        self._cycle = cycle
        self._profiles = profiles
        self._meter = meter
        self._perf = perf

    def attempt(self, queued: QueuedPod, *, now: float) -> Iterator[Instruction]:
        """Try to place a pod that was just popped."""
        pod = queued.pod
        if pod.metadata.deletion_timestamp is not None:
            # It is on its way out: nothing to schedule. Its deletion comes by the watch.
            key = f"{pod.metadata.namespace}/{pod.metadata.name}"
            yield warn(pod, attempt=queued.attempts, note=f"skip schedule deleting pod: {key}")
            return
        profile = self._profiles[pod.spec.scheduler_name]
        started = self._perf()
        try:
            decision = self._cycle.decide(profile, queued)
        except PluginError as error:
            self._meter.plugin_failed(error.plugin, error.extension_point)
            yield _plugin_log(queued, error)
            yield from self._failed(queued, str(error), seconds=self._perf() - started, now=now)
            return
        except QuantityError as error:
            yield from self._failed(queued, str(error), seconds=self._perf() - started, now=now)
            return
        seconds = self._perf() - started
        self._meter.decided(seconds)
        if isinstance(decision, Placement):
            if not any(plugin.binds(pod) for _, plugin in profile.binds):
                yield from self._failed(queued, NO_BINDER, seconds=seconds, now=now)
                return
            yield self._place(queued, decision, now=now)
        else:
            yield from self._rejected(queued, decision, seconds=seconds, now=now)

    def take_result(self, result: BindResult) -> Iterator[Instruction]:
        """End the attempt that a binding belonged to; other attempts' results are dropped."""
        flight = self._flights.land(result)
        if flight is None:
            return
        queued = flight.queued
        seconds = max(0.0, result.now - flight.started)
        if result.bound:
            self._meter.attempted(AttemptResult.SCHEDULED, queued.pod.spec.scheduler_name, seconds)
            self._meter.bound(queued, now=result.now)
            yield tell_success(queued.pod, attempt=queued.attempts, node=flight.node)
            return
        if self._cache.is_assumed(queued.uid):
            self._cache.forget(queued.uid)
        if queued.pod.spec.node_name:
            # Somebody else bound it meanwhile: it is placed, only not by us.
            self._meter.attempted(AttemptResult.ERROR, queued.pod.spec.scheduler_name, seconds)
            yield warn(queued.pod, attempt=queued.attempts, note=result.message)
            return
        yield from self._failed(queued, result.message, seconds=seconds, now=result.now)

    def _place(self, queued: QueuedPod, placement: Placement, *, now: float) -> Instruction:
        self._cache.assume(queued.pod, placement.row)
        flight = Flight(queued, self._cache.nodes.name_of(placement.row), started=now)
        self._flights.start(flight)
        return flight.bind()

    def _rejected(
        self, queued: QueuedPod, diagnosis: Diagnosis, *, seconds: float, now: float
    ) -> Iterator[Instruction]:
        pod = queued.pod
        self._meter.attempted(AttemptResult.UNSCHEDULABLE, pod.spec.scheduler_name, seconds)
        self._queue.return_rejected(queued, diagnosis.rejectors, now=now)
        yield from tell_failure(
            pod, attempt=queued.attempts, reason=UNSCHEDULABLE, message=diagnosis.message()
        )

    def _failed(
        self, queued: QueuedPod, message: str, *, seconds: float, now: float
    ) -> Iterator[Instruction]:
        pod = queued.pod
        self._meter.attempted(AttemptResult.ERROR, pod.spec.scheduler_name, seconds)
        self._queue.return_failed(queued, now=now)
        yield from tell_failure(
            pod, attempt=queued.attempts, reason=SCHEDULER_ERROR, message=message
        )


def _plugin_log(queued: QueuedPod, error: PluginError) -> Log:
    metadata = queued.pod.metadata
    return Log(
        Severity.ERROR,
        "plugin failed",
        {
            "plugin": error.plugin,
            "extension_point": error.extension_point,
            "pod": f"{metadata.namespace}/{metadata.name}",
            "attempt": queued.attempts,
            "error": str(error),
        },
    )
