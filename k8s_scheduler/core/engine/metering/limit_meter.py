"""Shows how many objects are past a limit, by limit."""

from collections import Counter
from collections.abc import Iterable

from k8s_scheduler.api.config.limits import Excess
from k8s_scheduler.obs.metrics import SchedulerMetrics


class LimitMeter:
    """Feeds the gauges; a limit is shown from when an object was first past it."""

    def __init__(self, metrics: SchedulerMetrics) -> None:
        self._metrics = metrics
        metrics.pods_over_limit.reset()
        metrics.nodes_over_limit.reset()
        self._shown: dict[tuple[str, str], int] = {}

    def show(
        self,
        *,
        pending: Iterable[tuple[Excess, ...]],
        placed: Iterable[tuple[Excess, ...]],
        nodes: Iterable[tuple[Excess, ...]],
    ) -> None:
        now = Counter((e.limit, "pending") for found in pending for e in found)
        now.update((e.limit, "placed") for found in placed for e in found)
        now.update((e.limit, "") for found in nodes for e in found)
        for key in {**self._shown, **now}:
            limit, place = key
            count = now.get(key, 0)
            if self._shown.get(key) == count:
                continue
            self._shown[key] = count
            if place:
                self._metrics.pods_over_limit.labels(limit, place).set(count)
            else:
                self._metrics.nodes_over_limit.labels(limit).set(count)
