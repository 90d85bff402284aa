"""Shows how the evaluations that are kept are doing."""

from prometheus_client import Counter

from k8s_scheduler.core.engine.shapes.shape_cache import ShapeCache
from k8s_scheduler.obs.metrics import SchedulerMetrics


class ShapeMeter:
    """Brings the metrics up to what the shape cache has counted: now and then, not every time."""

    def __init__(self, metrics: SchedulerMetrics) -> None:
        self._metrics = metrics
        self._shown: dict[tuple[str, str], int] = {}
        self._same = metrics.shape_verifications.labels("same")
        self._different = metrics.shape_verifications.labels("different")

    def verified(self, is_same: bool) -> None:
        """Count a look at whether what is kept is right."""
        (self._same if is_same else self._different).inc()

    def show(self, shapes: ShapeCache) -> None:
        """Show the state of a cache."""
        tally, metrics = shapes.tally, self._metrics
        metrics.shapes.set(len(shapes))
        metrics.shape_bytes.set(shapes.nbytes)
        kept = tally.answered
        self._raise(metrics.shape_questions, "kept", kept)
        self._raise(metrics.shape_questions, "not_kept", tally.repeated - kept)
        self._raise(metrics.shape_questions, "new", tally.new)
        for reason, count in tally.renewed.items():
            self._raise(metrics.shape_renewals, reason, count)
        for reason, count in tally.refused.items():
            self._raise(metrics.shape_refusals, reason, count)

    def _raise(self, counter: Counter, label: str, count: int) -> None:
        place = (counter._name, label)  # noqa: SLF001  there is no other way to ask for it
        more = count - self._shown.get(place, 0)
        if more:
            counter.labels(label).inc(more)
            self._shown[place] = count
