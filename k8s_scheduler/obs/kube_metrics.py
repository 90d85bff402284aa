"""What the Kubernetes layer counts."""

from prometheus_client import CollectorRegistry

from k8s_scheduler.obs.buckets import exponential
from k8s_scheduler.obs.counters import Counter, Gauge
from k8s_scheduler.obs.histograms import Histogram

# client-go's.
_REQUEST_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BODY_BYTES = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)


class KubeMetrics:
    """What the Kubernetes layer counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ["code", "method", "host"],
            registry=registry,
        )
        self.request_duration_seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Time from sending a request to having read its answer; watches don't count.",
            ["verb", "host"],
            buckets=_REQUEST_SECONDS,
            registry=registry,
        )
        self.request_size_bytes = Histogram(
            "rest_client_request_size_bytes",
            "Size of requests' bodies; watches don't count.",
            ["verb", "host"],
            buckets=_BODY_BYTES,
            registry=registry,
        )
        self.response_size_bytes = Histogram(
            "rest_client_response_size_bytes",
            "Size of answers' bodies; watches don't count.",
            ["verb", "host"],
            buckets=_BODY_BYTES,
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
        self.storage_set_back = Counter(
            "k8s_scheduler_storage_set_back",
            "Times that a resource version was lower than one known before, as after a restore of "
            "the API server's storage, by where it was seen.",
            ["source"],
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
        self.bind_failures = Counter(
            "k8s_scheduler_bind_failures",
            "Bindings that failed for certain, by reason; assigned_elsewhere: another client had "
            "bound the pod to another node.",
            ["reason"],
            registry=registry,
        )
        self.doubtful_binds = Gauge(
            "k8s_scheduler_doubtful_binds",
            "Bindings that were sent without a usable answer and are neither done nor failed yet.",
            registry=registry,
        )
        self.doubtful_binds_ended = Counter(
            "k8s_scheduler_doubtful_binds_ended",
            "Bindings that were in doubt, by how they ended: bound, or the reason of the failure; "
            "not_executed: read unbound when no request could be under way any more.",
            ["outcome"],
            registry=registry,
        )
        self.namespaces_held_back = Gauge(
            "k8s_scheduler_namespaces_held_back",
            "Namespaces whose pods are passed over, because as many of their bindings as one "
            "namespace may have are under way while some of them are in doubt.",
            registry=registry,
        )
        self.bind_duration_seconds = Histogram(
            "k8s_scheduler_bind_duration_seconds",
            "Time from handing over a binding to its definite outcome.",
            buckets=exponential(0.001, 2, 15),
            registry=registry,
        )
        self.pods_rejected = Counter(
            "k8s_scheduler_pods_rejected",
            "Pods that their kubelet refused to run, by its reason and by whose pods they were.",
            ["reason", "scheduler"],
            registry=registry,
        )
        self.late_writes = Counter(
            "k8s_scheduler_late_writes",
            "Writes that met the lease's deadline: withheld when about to be sent, or under way "
            "when it passed, by how they were answered then.",
            ["result"],
            registry=registry,
        )
        self.pending_writes = Gauge(
            "k8s_scheduler_pending_writes",
            "Writes waiting or under way, by class.",
            ["kind"],
            registry=registry,
        )
        self.rivals = Gauge(
            "k8s_scheduler_rivals",
            "Other Leases whose living holders serve a schedulerName of ours, as last seen.",
            registry=registry,
        )
        self.rival_looks = Counter(
            "k8s_scheduler_rival_looks",
            "Looks for such Leases: all seen, too many to see all, forbidden, or failed otherwise.",
            ["result"],
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
            "PodScheduled conditions given up: no room, refused, no answer after some tries, or no "
            "time for them at the end.",
            registry=registry,
        )
        self.leader_status = Gauge(
            "leader_election_master_status",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates "
            "backup, 1 indicates master. 'name' is the string used to identify the lease.",
            ["name"],
            registry=registry,
        )
