"""Shows how the evaluations that are kept are doing."""

from collections.abc import Mapping

from k8s_scheduler.core.engine.shapes.shape_cache import ShapeCache
from k8s_scheduler.obs.counters import Counter
from k8s_scheduler.obs.metrics import SchedulerMetrics


class ShapeMeter:
    """Brings the metrics up to what the shape cache has counted: now and then, not every time."""

    def __init__(self, metrics: SchedulerMetrics) -> None:
        self._metrics = metrics
        # By counter and label: what was shown so far.
        self._shown: dict[tuple[Counter, str], int] = {}
        # How many shapes there were, and how many questions, when it was last shown.
        self._questions = (0, 0, 0)
        self._same = metrics.shape_verifications.labels("same")
        self._different = metrics.shape_verifications.labels("different")

    def verified(self, is_same: bool) -> None:
        """Count a look at whether what is kept is right."""
        (self._same if is_same else self._different).inc()

    def show(self, shapes: ShapeCache) -> None:
        """Show the state of a cache, unless it was asked nothing since the last time."""
        tally, metrics = shapes.tally, self._metrics
        sizes = shapes.sizes()
        for cache, (nbytes, _) in sizes.items():
            metrics.cache_bytes.labels(cache).set(nbytes)
        self._raise(metrics.cache_dropped, {cache: gone for cache, (_, gone) in sizes.items()})
        questions = (len(shapes), tally.repeated, tally.new)
        if questions == self._questions:
            return
        self._questions = questions
        metrics.shapes.set(len(shapes))
        metrics.shape_bytes.set(shapes.nbytes)
        kept = tally.answered
        answers = {
            "kept": kept,
            "not_kept": tally.repeated - kept,
            "akin": tally.partial,
            "new": tally.new - tally.partial,
        }
        self._raise(metrics.shape_questions, answers)
        self._raise(metrics.shape_renewals, tally.renewed)
        self._raise(metrics.shape_refusals, tally.refused)

    def _raise(self, counter: Counter, counts: Mapping[str, int]) -> None:
        for label, count in counts.items():
            more = count - self._shown.get((counter, label), 0)
            if more:
                counter.labels(label).inc(more)
                self._shown[counter, label] = count
