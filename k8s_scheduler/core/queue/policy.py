"""What the configuration says about waiting in the queue."""

from dataclasses import dataclass

from k8s_scheduler.core.queue.backoff import BackoffPolicy
from k8s_scheduler.core.queue.queued_pod import QueuedPod


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """The settings of a queue."""

    backoff: BackoffPolicy
    parked_limit_seconds: float = 300.0
    # After as many attempts an error is no reason to try again; None: it always is.
    max_attempts: int | None = None
    # So many parked pods are told each second, at most, what holds them back now; 0: none is.
    # Recordings that say nothing of it are from before there was such a thing.
    renewals_per_second: int = 0

    def expiry_of(self, queued: QueuedPod) -> float:
        return self.backoff.expiry(
            timestamp=queued.timestamp,
            unschedulable_count=queued.unschedulable_count,
            errors=queued.consecutive_errors,
        )
