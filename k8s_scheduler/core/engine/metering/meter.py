"""Keeps kube-scheduler's metrics while pods move.

Children are bound once, when they are first needed. All methods together cost a decision a few
microseconds; only sampled attempts pay for a look at the clock around every plugin
(`plugin_timing`).
"""

from collections.abc import Callable, Iterable

from k8s_scheduler.core.engine.metering.point_meter import PointMeter
from k8s_scheduler.core.framework.status import AttemptResult
from k8s_scheduler.core.queue.queued_pod import QueuedPod, QueueObserver, QueuePlace
from k8s_scheduler.core.state.protocols import PlacedPods
from k8s_scheduler.obs.counters import Count, Level
from k8s_scheduler.obs.histograms import Observations
from k8s_scheduler.obs.metrics import SchedulerMetrics

# Beyond this, kube-scheduler's SLI histogram counts attempts as one.
_MANY_ATTEMPTS = 15
_POD = "pod"


class Meter(QueueObserver):
    """Feeds the metrics of one core."""

    def __init__(
        self,
        metrics: SchedulerMetrics,
        profiles: Iterable[str],
        *,
        perf: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.metrics = metrics
        self._pending = {place: metrics.pending_pods.labels(place.value) for place in QueuePlace}
        for gauge in self._pending.values():
            gauge.set(0)
        # A core that is made in place of another one counts from the start.
        metrics.unschedulable_pods.reset()
        # Entities are what upstream counts beside pods: single ones, or groups. Every one is a pod
        # here, so these are the same numbers once more, shown by `measure`.
        self._entities = {p: metrics.queued_entities.labels(p.value, _POD) for p in QueuePlace}
        self._queued = dict.fromkeys(QueuePlace, 0)
        self._entered: dict[tuple[QueuePlace, str], int] = {}
        self.perf = perf
        self._attempts: dict[tuple[AttemptResult, str], tuple[Count, Observations]] = {}
        # By profile; of those that are served no more too: pods on their way still go by them.
        self.watches: dict[str, PointMeter] = {}
        self.serve(profiles)
        self._nodes = metrics.cache_size.labels("nodes")
        self._pods = metrics.cache_size.labels("pods")
        self._assumed = metrics.cache_size.labels("assumed_pods")
        self._bindings = metrics.goroutines.labels("binding")
        self._preemptions = {
            failed: metrics.preemption_executions.labels("error" if failed else "success")
            for failed in (False, True)
        }
        self._incoming: dict[tuple[QueuePlace, str], Count] = {}
        self._rejected: dict[tuple[str, str], Level] = {}
        self._decisions = metrics.scheduling_algorithm_duration_seconds.labels()
        self._attempts_of_bound = metrics.pod_scheduling_attempts.labels()
        self._sli: dict[int, Observations] = {}
        self._events: dict[str, Observations] = {}
        self._plugins: dict[tuple[str, str, str], Observations] = {}

    def serve(self, profiles: Iterable[str]) -> None:
        """Be ready to count what profiles do; one that is known goes on as it was."""
        metrics = self.metrics
        for profile in profiles:
            if profile in self.watches:
                continue
            self.watches[profile] = PointMeter(metrics, profile, self.perf)
            for result in AttemptResult:
                labels = (result.value, profile)
                self._attempts[result, profile] = (
                    metrics.schedule_attempts.labels(*labels),
                    metrics.scheduling_attempt_duration_seconds.labels(*labels),
                )

    # The queue

    def moved(
        self, queued: QueuedPod, *, source: QueuePlace | None, target: QueuePlace | None
    ) -> None:
        if source is not None:
            self._pending[source].dec()
            self._queued[source] -= 1
        if target is not None:
            self._pending[target].inc()
            self._queued[target] += 1
        # A rejected pod counts from its return to the queue until it leaves it to be tried again.
        if source is None or target is None:
            for plugin in queued.rejectors:
                gauge = self._rejected_by(plugin, queued.pod.spec.scheduler_name)
                gauge.inc(1 if source is None else -1)

    def entered(self, place: QueuePlace, event: str) -> None:
        counter = self._incoming.get((place, event))
        if counter is None:
            counter = self.metrics.queue_incoming_pods.labels(place.value, event)
            self._incoming[place, event] = counter
        counter.inc()
        self._entered[place, event] = self._entered.get((place, event), 0) + 1

    def rejudged(self, queued: QueuedPod, rejectors: tuple[str, ...]) -> None:
        profile = queued.pod.spec.scheduler_name
        for plugin in queued.rejectors:
            self._rejected_by(plugin, profile).inc(-1)
        for plugin in rejectors:
            self._rejected_by(plugin, profile).inc(1)

    def _rejected_by(self, plugin: str, profile: str) -> Level:
        gauge = self._rejected.get((plugin, profile))
        if gauge is None:
            gauge = self.metrics.unschedulable_pods.labels(plugin, profile)
            self._rejected[plugin, profile] = gauge
        return gauge

    # Attempts

    def attempted(self, result: AttemptResult, profile: str, seconds: float) -> None:
        counter, duration = self._attempts[result, profile]
        counter.inc()
        duration.observe(seconds)

    def decided(self, seconds: float) -> None:
        self._decisions.observe(seconds)

    def bound(self, queued: QueuedPod, *, now: float) -> None:
        self._attempts_of_bound.observe(queued.attempts)
        if queued.first_active is not None:
            duration = self._sli_of(min(queued.attempts, _MANY_ATTEMPTS))
            duration.observe(max(0.0, now - queued.first_active))

    def _sli_of(self, attempts: int) -> Observations:
        child = self._sli.get(attempts)
        if child is None:
            label = f"{attempts}+" if attempts == _MANY_ATTEMPTS else str(attempts)
            child = self.metrics.pod_scheduling_sli_duration_seconds.labels(label)
            self._sli[attempts] = child
        return child

    def bound_after_flush(self) -> None:
        """Count a bound pod that no event had taken back into the queue, only the clock."""
        self.metrics.pod_scheduled_after_flush.inc()

    def permit_waited(self, status: str, seconds: float) -> None:
        self.metrics.permit_wait_duration_seconds.labels(status).observe(seconds)

    def reason_renewed(self, result: str) -> None:
        self.metrics.reason_renewals.labels(result).inc()

    def tried_to_make_room(self) -> None:
        self.metrics.preemption_attempts.inc()

    def preemption_ended(self, *, failed: bool) -> None:
        self._preemptions[failed].inc()

    # Plugins

    def plugin_took(self, plugin: str, point: str, status: str, seconds: float) -> None:
        child = self._plugins.get((plugin, point, status))
        if child is None:
            durations = self.metrics.plugin_execution_duration_seconds
            child = self._plugins[plugin, point, status] = durations.labels(plugin, point, status)
        child.observe(seconds)

    def plugin_failed(self, plugin: str, extension_point: str) -> None:
        self.metrics.plugin_errors.labels(plugin, extension_point).inc()

    # The cluster

    def handled(self, event: str, seconds: float) -> None:
        child = self._events.get(event)
        if child is None:
            child = self.metrics.event_handling_duration_seconds.labels(event)
            self._events[event] = child
        child.observe(seconds)

    def watch_bindings(self, count: Callable[[], int]) -> None:
        """Show, at every scrape, how many pods are on their way to be bound."""
        self._bindings.set_function(count)

    def measure(self, cache: PlacedPods) -> None:
        """Take the sizes of the cache, and show what was only noted so far."""
        self._nodes.set(len(cache.nodes))
        self._pods.set(cache.pod_count)
        self._assumed.set(cache.assumed_count)
        for place, count in self._queued.items():
            self._entities[place].set(count)
        entered, self._entered = self._entered, {}
        for (place, event), count in entered.items():
            self.metrics.queue_incoming_entities.labels(place.value, event, _POD).inc(count)
        for watch in self.watches.values():
            watch.flush()
