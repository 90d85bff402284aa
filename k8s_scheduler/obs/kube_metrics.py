"""What the Kubernetes layer counts."""

from prometheus_client import CollectorRegistry

from k8s_scheduler.obs.metric_set import MetricSet, exponential

# client-go's.
_REQUEST_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BODY_BYTES = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)


class KubeMetrics(MetricSet):
    """What the Kubernetes layer counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.requests = self._counter(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ["code", "method", "host"],
        )
        self.request_duration_seconds = self._histogram(
            "rest_client_request_duration_seconds",
            "Time from sending a request to having read its answer; watches don't count.",
            ["verb", "host"],
            buckets=_REQUEST_SECONDS,
        )
        self.request_size_bytes = self._histogram(
            "rest_client_request_size_bytes",
            "Size of requests' bodies; watches don't count.",
            ["verb", "host"],
            buckets=_BODY_BYTES,
        )
        self.response_size_bytes = self._histogram(
            "rest_client_response_size_bytes",
            "Size of answers' bodies; watches don't count.",
            ["verb", "host"],
            buckets=_BODY_BYTES,
        )
        self.reflector_lists = self._counter(
            "k8s_scheduler_reflector_lists",
            "Lists made to (re)build a resource's state, by how they were made.",
            ["resource", "mode"],
        )
        self.reflector_failures = self._counter(
            "k8s_scheduler_reflector_failures",
            "Lists and watches that ended in an error, by reason.",
            ["resource", "reason"],
        )
        self.reflector_absent = self._gauge(
            "k8s_scheduler_reflector_absent",
            "1 while the API server does not serve a resource, which then counts as empty.",
            ["resource"],
        )
        self.reflector_events = self._counter(
            "k8s_scheduler_reflector_events",
            "Watch events received, by type.",
            ["resource", "type"],
        )
        self.storage_set_back = self._counter(
            "k8s_scheduler_storage_set_back",
            "Times that a resource version was lower than one known before, as after a restore of "
            "the API server's storage, by where it was seen.",
            ["source"],
        )
        self.undecodable_objects = self._counter(
            "k8s_scheduler_undecodable_objects",
            "Objects that could not be decoded and were left out.",
            ["resource"],
        )
        self.loop_slice_seconds = self._histogram(
            "k8s_scheduler_loop_slice_seconds",
            "CPU time for which one owner held the event loop at a stretch.",
            ["owner"],
            buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5),
        )
        self.bind_attempts = self._counter(
            "k8s_scheduler_bind_attempts",
            "Binding calls by how they ended; unknown ones are resolved by reading the pod.",
            ["result"],
        )
        self.bind_failures = self._counter(
            "k8s_scheduler_bind_failures",
            "Bindings that failed for certain, by reason; assigned_elsewhere: another client had "
            "bound the pod to another node.",
            ["reason"],
        )
        self.doubtful_binds = self._gauge(
            "k8s_scheduler_doubtful_binds",
            "Bindings that were sent without a usable answer and are neither done nor failed yet.",
        )
        self.doubtful_binds_ended = self._counter(
            "k8s_scheduler_doubtful_binds_ended",
            "Bindings that were in doubt, by how they ended: bound, or the reason of the failure; "
            "not_executed: read unbound when no request could be under way any more.",
            ["outcome"],
        )
        self.namespaces_held_back = self._gauge(
            "k8s_scheduler_namespaces_held_back",
            "Namespaces whose pods are passed over, because as many of their bindings as one "
            "namespace may have are under way while some of them are in doubt.",
        )
        self.bind_duration_seconds = self._histogram(
            "k8s_scheduler_bind_duration_seconds",
            "Time from handing over a binding to its definite outcome.",
            buckets=exponential(0.001, 2, 15),
        )
        self.pods_rejected = self._counter(
            "k8s_scheduler_pods_rejected",
            "Pods that their kubelet refused to run, by its reason and by whose pods they were.",
            ["reason", "scheduler"],
        )
        self.late_writes = self._counter(
            "k8s_scheduler_late_writes",
            "Writes that met the lease's deadline: withheld when about to be sent, or under way "
            "when it passed, by how they were answered then.",
            ["result"],
        )
        self.pending_writes = self._gauge(
            "k8s_scheduler_pending_writes",
            "Writes waiting or under way, by class.",
            ["kind"],
        )
        self.rivals = self._gauge(
            "k8s_scheduler_rivals",
            "Other Leases whose living holders serve a schedulerName of ours, as last seen.",
        )
        self.rival_looks = self._counter(
            "k8s_scheduler_rival_looks",
            "Looks for such Leases: all seen, too many to see all, forbidden, or failed otherwise.",
            ["result"],
        )
        self.events_dropped = self._counter(
            "k8s_scheduler_events_dropped",
            "Events not written, by reason.",
            ["reason"],
        )
        self.conditions_dropped = self._counter(
            "k8s_scheduler_conditions_dropped",
            "PodScheduled conditions given up: no room, refused, no answer after some tries, or no "
            "time for them at the end.",
        )
        self.leader_status = self._gauge(
            "leader_election_master_status",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates "
            "backup, 1 indicates master. 'name' is the string used to identify the lease.",
            ["name"],
        )
