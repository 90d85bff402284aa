"""What `k8s-scheduler shadow` measures of the schedulers that it follows."""

from prometheus_client import CollectorRegistry, Counter

from k8s_scheduler.obs.histograms import Histogram

_REGRETS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class ShadowMetrics:
    """On a registry that the caller owns."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._bindings = Counter(
            "k8s_scheduler_shadow_bindings",
            "Bindings of a scheduler that is followed, by how the chosen node stood.",
            ["profile", "result"],
            registry=registry,
        )
        self._regret = Histogram(
            "k8s_scheduler_shadow_regret",
            "Our best total minus that of the chosen node, on the state before the binding.",
            ["profile"],
            buckets=_REGRETS,
            registry=registry,
        )
        self._unplaced = Counter(
            "k8s_scheduler_shadow_unplaced_feasible",
            "Pods that the scheduler could not place although a node fitted all the while.",
            ["profile"],
            registry=registry,
        )

    def judged(self, profile: str, result: str) -> None:
        """Count a binding."""
        self._bindings.labels(profile, result).inc()

    def regretted(self, profile: str, regret: int) -> None:
        """Take what a feasible choice fell short by."""
        self._regret.labels(profile).observe(regret)

    def unplaced(self, profile: str) -> None:
        """Count a pod that could have been placed."""
        self._unplaced.labels(profile).inc()
