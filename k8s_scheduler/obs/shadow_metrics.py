"""What `k8s-scheduler shadow` measures of the schedulers that it follows."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from k8s_scheduler.obs.metric_set import MetricSet

_REGRETS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class ShadowMetrics(MetricSet):
    """On a registry that the caller owns; every series is there from the start."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        profiles: Sequence[str] = (),
        results: Sequence[str] = (),
    ) -> None:
        super().__init__(registry)
        bindings = self._counter(
            "k8s_scheduler_shadow_bindings",
            "Bindings of a scheduler that is followed, by how the chosen node stood.",
            ["profile", "result"],
        )
        regret = self._histogram(
            "k8s_scheduler_shadow_regret",
            "Our best total minus that of the chosen node, on the state before the binding.",
            ["profile"],
            buckets=_REGRETS,
        )
        unplaced = self._counter(
            "k8s_scheduler_shadow_unplaced_feasible",
            "Pods that the scheduler could not place although a node fitted all the while.",
            ["profile"],
        )
        self._bindings = {(p, r): bindings.labels(p, r) for p in profiles for r in results}
        self._regret = {profile: regret.labels(profile) for profile in profiles}
        self._unplaced = {profile: unplaced.labels(profile) for profile in profiles}

    def judged(self, profile: str, result: str) -> None:
        self._bindings[profile, result].inc()

    def regretted(self, profile: str, regret: int) -> None:
        self._regret[profile].observe(regret)

    def unplaced(self, profile: str) -> None:
        self._unplaced[profile].inc()
