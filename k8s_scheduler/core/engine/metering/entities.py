"""Counts what waits in the queue the way kube-scheduler counts single pods and groups of pods.

Every entity is a single pod here, so these are the numbers of pods once more. They are kept in
plain numbers until the next `flush`, to cost next to nothing.
"""

from typing import Final

from k8s_scheduler.core.queue.queued_pod import QueuePlace
from k8s_scheduler.obs.metrics import SchedulerMetrics

_POD: Final = "pod"


class Entities:
    """Feeds the metrics of entities."""

    def __init__(self, metrics: SchedulerMetrics) -> None:
        self._incoming = metrics.queue_incoming_entities
        self._gauges = {
            place: metrics.queued_entities.labels(place.value, _POD) for place in QueuePlace
        }
        self._queued = dict.fromkeys(QueuePlace, 0)
        self._entered: dict[tuple[QueuePlace, str], int] = {}

    def moved(self, source: QueuePlace | None, target: QueuePlace | None) -> None:
        """Take note of a pod that left one place for another."""
        if source is not None:
            self._queued[source] -= 1
        if target is not None:
            self._queued[target] += 1

    def entered(self, place: QueuePlace, event: str) -> None:
        """Take note of why a pod entered a place."""
        key = (place, event)
        self._entered[key] = self._entered.get(key, 0) + 1

    def flush(self) -> None:
        """Show what was noted."""
        for place, count in self._queued.items():
            self._gauges[place].set(count)
        entered, self._entered = self._entered, {}
        for (place, event), count in entered.items():
            self._incoming.labels(place.value, event, _POD).inc(count)
