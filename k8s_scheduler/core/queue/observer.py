"""The interface through which the queue reports moves, so that it knows no metrics."""

from k8s_scheduler.core.queue.queued_pod import QueuedPod, QueuePlace


class QueueObserver:
    """Hears of every move; the engine turns it into metrics."""

    def moved(
        self, queued: QueuedPod, *, source: QueuePlace | None, target: QueuePlace | None
    ) -> None:
        """Take note of a pod that left `source` (None: it is new) for `target` (None: it left)."""

    def entered(self, place: QueuePlace, event: str) -> None:
        """Take note of why a pod entered a place."""

    def rejudged(self, queued: QueuedPod, rejectors: tuple[str, ...]) -> None:
        """Take note that other plugins are about to be what rejects a parked pod."""
