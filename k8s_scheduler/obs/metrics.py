"""Every metric of the process, in one registry that the caller owns.

Names, labels and buckets without the prefix `k8s_scheduler_` are kube-scheduler's. Children are
bound where they are used, once: a label lookup costs more than the observation itself.
"""

from collections.abc import Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return the bucket bounds that Prometheus' Go client calls ExponentialBuckets."""
    return tuple(start * factor**i for i in range(count))


class KubeMetrics:
    """What the Kubernetes layer counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ["code", "method", "host"],
            registry=registry,
        )
        self.reflector_lists = Counter(
            "k8s_scheduler_reflector_lists",
            "Lists made to (re)build a resource's state, by how they were made.",
            ["resource", "mode"],
            registry=registry,
        )
        self.reflector_failures = Counter(
            "k8s_scheduler_reflector_failures",
            "Lists and watches that ended in an error, by reason.",
            ["resource", "reason"],
            registry=registry,
        )
        self.reflector_absent = Gauge(
            "k8s_scheduler_reflector_absent",
            "1 while the API server does not serve a resource, which then counts as empty.",
            ["resource"],
            registry=registry,
        )
        self.reflector_events = Counter(
            "k8s_scheduler_reflector_events",
            "Watch events received, by type.",
            ["resource", "type"],
            registry=registry,
        )
        self.undecodable_objects = Counter(
            "k8s_scheduler_undecodable_objects",
            "Objects that could not be decoded and were left out.",
            ["resource"],
            registry=registry,
        )
        self.loop_slice_seconds = Histogram(
            "k8s_scheduler_loop_slice_seconds",
            "CPU time for which one owner held the event loop at a stretch.",
            ["owner"],
            buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5),
            registry=registry,
        )
        self.bind_attempts = Counter(
            "k8s_scheduler_bind_attempts",
            "Binding calls by how they ended; unknown ones are resolved by reading the pod.",
            ["result"],
            registry=registry,
        )
        self.bind_duration_seconds = Histogram(
            "k8s_scheduler_bind_duration_seconds",
            "Time from handing over a binding to its definite outcome.",
            buckets=exponential(0.001, 2, 15),
            registry=registry,
        )
        self.pending_writes = Gauge(
            "k8s_scheduler_pending_writes",
            "Writes waiting or under way, by class.",
            ["kind"],
            registry=registry,
        )
        self.events_dropped = Counter(
            "k8s_scheduler_events_dropped",
            "Events not written, by reason.",
            ["reason"],
            registry=registry,
        )
        self.conditions_dropped = Counter(
            "k8s_scheduler_conditions_dropped",
            "PodScheduled conditions given up: no room, refused, or no answer after some tries.",
            registry=registry,
        )
        self.leader_status = Gauge(
            "leader_election_master_status",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates "
            "backup, 1 indicates master. 'name' is the string used to identify the lease.",
            ["name"],
            registry=registry,
        )


class SchedulerMetrics:
    """What the core counts; kube-scheduler's names."""

    def __init__(self, registry: CollectorRegistry) -> None:
        attempt_buckets = exponential(0.001, 2, 15)
        self.schedule_attempts = Counter(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod "
            "could not be scheduled, while 'error' means an internal scheduler problem.",
            ["result", "profile"],
            registry=registry,
        )
        self.scheduling_attempt_duration_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            ["result", "profile"],
            buckets=attempt_buckets,
            registry=registry,
        )
        self.scheduling_algorithm_duration_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds",
            buckets=attempt_buckets,
            registry=registry,
        )
        self.pending_pods = Gauge(
            "scheduler_pending_pods",
            "Number of pending pods, by the queue type. 'active' means number of pods in "
            "activeQ; 'backoff' means number of pods in backoffQ; 'unschedulable' means number "
            "of pods in unschedulablePods that the scheduler attempted to schedule and failed; "
            "'gated' is the number of unschedulable pods that the scheduler never attempted to "
            "schedule because they are gated.",
            ["queue"],
            registry=registry,
        )
        self.queue_incoming_pods = Counter(
            "scheduler_queue_incoming_pods",
            "Number of pods added to scheduling queues by event and queue type.",
            ["queue", "event"],
            registry=registry,
        )
        self.pod_scheduling_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            buckets=exponential(1, 2, 5),
            registry=registry,
        )
        self.pod_scheduling_sli_duration_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "E2e latency for a pod being scheduled, from the time the pod enters the scheduling "
            "queue and might involve multiple scheduling attempts.",
            ["attempts"],
            buckets=exponential(0.01, 2, 20),
            registry=registry,
        )
        self.unschedulable_pods = Gauge(
            "scheduler_unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name. A pod will increment "
            "the gauge for all plugins that caused it to not schedule and so this metric have "
            "meaning only when broken down by plugin.",
            ["plugin", "profile"],
            registry=registry,
        )
        self.cache_size = Gauge(
            "scheduler_cache_size",
            "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
            ["type"],
            registry=registry,
        )
        self.preemption_attempts = Counter(
            "scheduler_preemption_attempts",
            "Total preemption attempts in the cluster till now",
            registry=registry,
        )
        self.preemption_victims = Histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims",
            buckets=exponential(1, 2, 7),
            registry=registry,
        )
        self.plugin_errors = Counter(
            "k8s_scheduler_plugin_errors",
            "Cycles that failed because a plugin raised, by plugin and extension point.",
            ["plugin", "extension_point"],
            registry=registry,
        )


class RecordingMetrics:
    """What the recording of inputs says about itself."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.active = Gauge(
            "k8s_scheduler_recording_active",
            "1 while every input is being recorded (--record), 0 otherwise.",
            registry=registry,
        )
        self.bytes = Counter(
            "k8s_scheduler_recording_bytes",
            "Bytes written to recordings.",
            registry=registry,
        )


class Metrics:
    """All metrics of a process, on a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.kube = KubeMetrics(self.registry)
        self.scheduler = SchedulerMetrics(self.registry)
        self.recording = RecordingMetrics(self.registry)

    def with_process(self) -> "Metrics":
        """Add what describes the process itself; only the daemon wants it."""
        # kube-scheduler shows no `_created` samples, and they double the page.
        disable_created_metrics()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        return self

    def report_slice(self, owner: str, seconds: float) -> None:
        """Take a slice's CPU time; the signature `lib.slices` expects."""
        self.kube.loop_slice_seconds.labels(owner).observe(seconds)


def metric_names(registry: CollectorRegistry) -> Iterable[str]:
    """Yield every metric's name as it stands on the wire, for documentation and tests."""
    for family in registry.collect():
        yield f"{family.name}_total" if family.type == "counter" else family.name
