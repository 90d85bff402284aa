"""How long pods wait: what the configuration says of it, and kube-scheduler's backoff.

1, 2, 4, 8, 10, 10 ... seconds. Expiry is cut to whole seconds, so pods that fail together
return together; a pod that waited elsewhere for longer than its backoff does not wait again.
"""

import math
from dataclasses import dataclass

from k8s_scheduler.core.queue.queued_pod import QueuedPod


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """First and longest wait; a longest wait of 0 switches backoff off."""

    initial_seconds: float = 1.0
    maximum_seconds: float = 10.0

    def expiry(self, *, timestamp: float, unschedulable_count: int, errors: int) -> float:
        """Return when the wait is over; errors in a row count before rejections."""
        count = errors or unschedulable_count
        if count == 0 or self.maximum_seconds == 0:
            return 0.0
        # 2**63 overflows nothing here, but a pod may fail for weeks.
        doublings = min(count - 1, 62)
        wait = min(self.initial_seconds * 2**doublings, self.maximum_seconds)
        return float(math.floor(timestamp + wait))


def is_over(expiry: float, now: float) -> bool:
    return expiry < math.floor(now)


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
