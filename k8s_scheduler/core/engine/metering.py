"""Keeps kube-scheduler's metrics while pods move. Children are bound once."""

from k8s_scheduler.core.framework.status import AttemptResult
from k8s_scheduler.core.queue.queued_pod import Place, QueuedPod
from k8s_scheduler.core.queue.scheduling_queue import QueueObserver
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.obs.metrics import SchedulerMetrics

# Beyond this, kube-scheduler's SLI histogram counts attempts as one.
_MANY_ATTEMPTS = 15


class Meter(QueueObserver):
    """Feeds the metrics of one core."""

    def __init__(self, metrics: SchedulerMetrics, profiles: tuple[str, ...]) -> None:
        self._metrics = metrics
        self._pending = {place: metrics.pending_pods.labels(place.value) for place in Place}
        for gauge in self._pending.values():
            gauge.set(0)
        self._attempts = {
            (result, profile): (
                metrics.schedule_attempts.labels(result.value, profile),
                metrics.scheduling_attempt_duration_seconds.labels(result.value, profile),
            )
            for result in AttemptResult
            for profile in profiles
        }
        self._incoming = metrics.queue_incoming_pods
        self._nodes = metrics.cache_size.labels("nodes")
        self._pods = metrics.cache_size.labels("pods")
        self._assumed = metrics.cache_size.labels("assumed_pods")

    def moved(self, queued: QueuedPod, *, source: Place | None, target: Place | None) -> None:
        """Count pods by place, and parked ones by the plugins that rejected them."""
        if source is not None:
            self._pending[source].dec()
        if target is not None:
            self._pending[target].inc()
        # A rejected pod counts from its return to the queue until it leaves it to be tried again.
        if source is None or target is None:
            for plugin in queued.rejectors:
                gauge = self._metrics.unschedulable_pods.labels(
                    plugin, queued.pod.spec.scheduler_name
                )
                gauge.inc(1 if source is None else -1)

    def entered(self, place: Place, event: str) -> None:
        """Count arrivals."""
        self._incoming.labels(place.value, event).inc()

    def attempted(self, result: AttemptResult, profile: str, seconds: float) -> None:
        """Count an attempt that has ended."""
        counter, duration = self._attempts[result, profile]
        counter.inc()
        duration.observe(seconds)

    def decided(self, seconds: float) -> None:
        """Observe the time one decision took."""
        self._metrics.scheduling_algorithm_duration_seconds.observe(seconds)

    def bound(self, queued: QueuedPod, *, now: float) -> None:
        """Observe how long and how many attempts a pod needed."""
        self._metrics.pod_scheduling_attempts.observe(queued.attempts)
        if queued.first_active is not None:
            attempts = (
                f"{_MANY_ATTEMPTS}+" if queued.attempts >= _MANY_ATTEMPTS else str(queued.attempts)
            )
            self._metrics.pod_scheduling_sli_duration_seconds.labels(attempts).observe(
                max(0.0, now - queued.first_active)
            )

    def tried_to_make_room(self) -> None:
        """Count an attempt at preemption."""
        self._metrics.preemption_attempts.inc()

    def preempted(self, victims: int) -> None:
        """Observe how many pods have to leave for one."""
        self._metrics.preemption_victims.observe(victims)

    def plugin_failed(self, plugin: str, extension_point: str) -> None:
        """Count a plugin that raised."""
        self._metrics.plugin_errors.labels(plugin, extension_point).inc()

    def measure(self, cache: Cache) -> None:
        """Take the sizes of the cache."""
        self._nodes.set(len(cache.nodes))
        self._pods.set(cache.pod_count)
        self._assumed.set(cache.assumed_count)
