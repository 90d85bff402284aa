"""What the core counts: kube-scheduler's metrics, by its names, labels and buckets.

Which of kube-scheduler's metrics are left out, and why, is listed in docs/metrics.md.
"""

from prometheus_client import CollectorRegistry

from k8s_scheduler.obs.metric_set import MetricSet, exponential

_ATTEMPT = exponential(0.001, 2, 15)
_POINT = exponential(0.0001, 2, 12)
_PLUGIN = exponential(0.00001, 1.5, 20)


class SchedulerMetrics(MetricSet):
    """What the core counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self._count_attempts()
        self._count_queue()
        self._count_plugins()
        self._count_shapes()
        self._count_preemptions()
        self.cache_size = self._gauge(
            "scheduler_cache_size",
            "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
            ["type"],
        )
        self.overfilled = self._counter(
            "k8s_scheduler_node_overfilled",
            "Times that pods came to ask for more of a node's resource than it has, by cause; in "
            "a race, by whose pod was there first.",
            ["cause", "resource", "first"],
        )
        self.overfilled_nodes = self._gauge(
            "k8s_scheduler_overfilled_nodes",
            "Nodes whose pods ask for more than they have, now.",
        )
        self.event_handling_duration_seconds = self._histogram(
            "scheduler_event_handling_duration_seconds",
            "Time to take in one change of the cluster.",
            ["event"],
            buckets=_POINT,
        )

    def _count_attempts(self) -> None:
        self.schedule_attempts = self._counter(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod "
            "could not be scheduled, while 'error' means an internal scheduler problem.",
            ["result", "profile"],
        )
        self.scheduling_attempt_duration_seconds = self._histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            ["result", "profile"],
            buckets=_ATTEMPT,
        )
        self.scheduling_algorithm_duration_seconds = self._histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds",
            buckets=_ATTEMPT,
        )
        self.pod_scheduling_attempts = self._histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            buckets=exponential(1, 2, 5),
        )
        self.pod_scheduling_sli_duration_seconds = self._histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "E2e latency for a pod being scheduled, from the time the pod enters the scheduling "
            "queue and might involve multiple scheduling attempts.",
            ["attempts"],
            buckets=exponential(0.01, 2, 20),
        )
        self.pod_scheduled_after_flush = self._counter(
            "scheduler_pod_scheduled_after_flush",
            "Pods that were bound after only the clock had taken them back into the queue.",
        )
        self.permit_wait_duration_seconds = self._histogram(
            "scheduler_permit_wait_duration_seconds",
            "How long pods waited for a permit, by what came of it.",
            ["result"],
            buckets=_ATTEMPT,
        )
        self.goroutines = self._gauge(
            "scheduler_goroutines",
            "Work under way beside the decisions; 'binding' counts pods on their way to be bound.",
            ["operation"],
        )

    def _count_queue(self) -> None:
        self.pending_pods = self._gauge(
            "scheduler_pending_pods",
            "Number of pending pods, by the queue type. 'active' means number of pods in "
            "activeQ; 'backoff' means number of pods in backoffQ; 'unschedulable' means number "
            "of pods in unschedulablePods that the scheduler attempted to schedule and failed; "
            "'gated' is the number of unschedulable pods that the scheduler never attempted to "
            "schedule because they are gated.",
            ["queue"],
        )
        self.queued_entities = self._gauge(
            "scheduler_queued_entities",
            "What waits to be scheduled, by queue; every entity is a single pod.",
            ["queue", "type"],
        )
        self.queue_incoming_pods = self._counter(
            "scheduler_queue_incoming_pods",
            "Number of pods added to scheduling queues by event and queue type.",
            ["queue", "event"],
        )
        self.queue_incoming_entities = self._counter(
            "scheduler_queue_incoming_entities",
            "What was added to scheduling queues, by event; every entity is a single pod.",
            ["queue", "event", "type"],
        )
        self.unschedulable_pods = self._gauge(
            "scheduler_unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name. A pod will increment "
            "the gauge for all plugins that caused it to not schedule and so this metric have "
            "meaning only when broken down by plugin.",
            ["plugin", "profile"],
        )

        self.pods_over_limit = self._gauge(
            "k8s_scheduler_pods_over_limit",
            "Pods past a limit of the configuration: pending ones are not tried, placed ones count "
            "with what is within.",
            ["limit", "place"],
        )
        self.nodes_over_limit = self._gauge(
            "k8s_scheduler_nodes_over_limit",
            "Nodes past a limit of the configuration, which count with what is within.",
            ["limit"],
        )

        self.quarantined_pods = self._gauge(
            "k8s_scheduler_quarantined_pods",
            "Pods that are tried last and alone because a process ended while it tried them.",
        )

    def _count_plugins(self) -> None:
        self.framework_extension_point_duration_seconds = self._histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Time that all plugins of an extension point took together.",
            ["extension_point", "status", "profile"],
            buckets=_POINT,
        )
        self.plugin_execution_duration_seconds = self._histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Time that one plugin took at an extension point, in a tenth of the attempts.",
            ["plugin", "extension_point", "status"],
            buckets=_PLUGIN,
        )
        self.plugin_evaluation = self._counter(
            "scheduler_plugin_evaluation",
            "How often plugins were asked: once for a pod at PreFilter and PreScore, once for a "
            "node at Filter and Score.",
            ["plugin", "extension_point", "profile"],
        )
        self.attempts_exhausted = self._counter(
            "k8s_scheduler_attempts_exhausted",
            "Pods that failed as often as PodMaxAttempts allows.",
            ["profile"],
        )
        self.cache_differences = self._counter(
            "k8s_scheduler_cache_differences",
            "Objects that a comparison found to be held otherwise than the API server has them, by "
            "kind; `amounts`: nodes on which what pods take was counted wrong.",
            ["kind"],
        )
        self.cache_comparisons = self._counter(
            "k8s_scheduler_cache_comparisons",
            "Comparisons of the caches with the API server, by what came of them.",
            ["result"],
        )
        self.core_rebuilds = self._counter(
            "k8s_scheduler_core_rebuilds",
            "New cores that were made because one failed on a change of the cluster.",
        )
        self.objects_left_out = self._gauge(
            "k8s_scheduler_objects_left_out",
            "Objects on which cores have failed and that are left out, or counted in part.",
            ["resource"],
        )
        self.unconfirmed_pods = self._counter(
            "k8s_scheduler_unconfirmed_pods",
            "Bound pods that the watch did not show on their node and that were read, by what was "
            "found.",
            ["found"],
        )
        self.parked_but_feasible = self._counter(
            "k8s_scheduler_parked_but_feasible",
            "Parked pods of a sample that would have fitted: a bug in waking.",
        )
        self.reason_renewals = self._counter(
            "k8s_scheduler_reason_renewals",
            "Parked pods whose reason changed without an attempt: told, woken because more than "
            "the reason changed, or put off by a limit.",
            ["result"],
        )
        self.plugin_errors = self._counter(
            "k8s_scheduler_plugin_errors",
            "Cycles that failed because a plugin raised, by plugin and extension point.",
            ["plugin", "extension_point"],
        )

    def _count_shapes(self) -> None:
        self.shapes = self._gauge(
            "k8s_scheduler_shapes",
            "Shapes of pods whose evaluation on all nodes is kept.",
        )
        self.shape_bytes = self._gauge(
            "k8s_scheduler_shape_bytes",
            "Memory that the kept evaluations take.",
        )
        self.cache_bytes = self._gauge(
            "k8s_scheduler_cache_bytes",
            "Memory that caches take whose entries hold content of pods.",
            ["cache"],
        )
        self.cache_dropped = self._counter(
            "k8s_scheduler_cache_dropped",
            "Entries that had to go because their cache took too much memory.",
            ["cache"],
        )
        self.cache_budget_bytes = self._gauge(
            "k8s_scheduler_cache_budget_bytes",
            "Memory that kept evaluations may take: less than usual while memory is short.",
        )
        self.memory_limit_bytes = self._gauge(
            "k8s_scheduler_memory_limit_bytes",
            "Memory below which the process keeps itself (--memory-limit); 0 without a limit.",
        )
        self.memory_shrinks = self._counter(
            "k8s_scheduler_memory_shrinks",
            "Times that caches were told to shrink because memory was short.",
        )
        self.shape_questions = self._counter(
            "k8s_scheduler_shape_questions",
            "Decisions by whether the pod's shape was new, or new but akin to others, and if not, "
            "whether its evaluation was kept.",
            ["answer"],
        )
        self.shape_renewals = self._counter(
            "k8s_scheduler_shape_renewals",
            "Evaluations that had to be made anew, by reason.",
            ["reason"],
        )
        self.shape_refusals = self._counter(
            "k8s_scheduler_shape_refusals",
            "Evaluations that could not be kept, by reason.",
            ["reason"],
        )
        self.shape_verifications = self._counter(
            "k8s_scheduler_shape_verifications",
            "Decisions of a sample (--verify-cache) that were made again from scratch: anything "
            "different is a bug.",
            ["result"],
        )

    def _count_preemptions(self) -> None:
        self.preemption_attempts = self._counter(
            "scheduler_preemption_attempts",
            "Attempts to make room for a pod that no node takes.",
        )
        self.preemption_victims = self._histogram(
            "scheduler_preemption_victims",
            "Pods that have to leave for one.",
            buckets=exponential(1, 2, 7),
        )
        self.preemption_executions = self._counter(
            "scheduler_preemption_goroutines_execution",
            "Preemptions that were carried out beside the decisions, by how they ended.",
            ["result"],
        )
        self.preemptions_put_off = self._counter(
            "k8s_scheduler_preemptions_put_off_total",
            "Preemptions that the limit on victims per minute did not allow when they were found.",
        ).labels()
