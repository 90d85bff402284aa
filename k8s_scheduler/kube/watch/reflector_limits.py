"""How patient a reflector is. The numbers are client-go's where it has them.

Silence is judged by bookmarks: the server sends one about every minute, so a watch that says
nothing for much longer is dead, whatever the state of its socket.
"""

import random
from dataclasses import dataclass, field
from typing import Final

from k8s_scheduler.kube.errors import (
    Gone,
    KubeError,
    NotSent,
    OutcomeUnknown,
    ServerError,
    TooManyRequests,
)
from k8s_scheduler.kube.waiting import bounded_wait
from k8s_scheduler.lib.backoff import Backoff


@dataclass(frozen=True, slots=True)
class Pace:
    """Limits and delays of one reflector."""

    page_limit: int = 500
    list_timeout_seconds: float = 60.0
    probe_timeout_seconds: float = 5.0
    # The server ends a watch after a time drawn from this range, so that watches that were
    # opened together do not all come back together.
    watch_min_seconds: float = 300.0
    watch_max_seconds: float = 600.0
    stall_seconds: float = 100.0
    # A watch that ends sooner counts as a failure, or it would be opened again without pause.
    short_watch_seconds: float = 1.0
    backoff_initial_seconds: float = 0.8
    backoff_maximum_seconds: float = 30.0
    # A server that is away is asked more often than one that refuses: nothing is known of what
    # happens until it is back, and pods wait.
    away_maximum_seconds: float = 4.0
    # After working for this long, a failure starts over with short delays.
    good_stretch_seconds: float = 60.0
    retry_after_maximum_seconds: float = 300.0
    # Draws the jitter of all of them.
    rng: random.Random = field(default_factory=random.Random, compare=False)


DEFAULT_PACE: Final = Pace()


class Delays:
    """Says how long to wait after each failure."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._backoff = Backoff(
            initial_seconds=pace.backoff_initial_seconds,
            maximum_seconds=pace.backoff_maximum_seconds,
            uniform=pace.rng.random,
        )
        self._away = Backoff(
            initial_seconds=pace.backoff_initial_seconds,
            maximum_seconds=pace.away_maximum_seconds,
            uniform=pace.rng.random,
        )
        self._gone_before = False

    def after(self, error: KubeError, *, lasted_seconds: float) -> float:
        """Return the delay after a list or watch that failed when it had lasted so long."""
        if lasted_seconds >= self._pace.good_stretch_seconds:
            self._backoff.reset()
            self._away.reset()
            self._gone_before = False
        if isinstance(error, Gone) and not self._gone_before:
            # Compacted history is normal: list at once. Only a server that answers so again and
            # again is given time.
            self._gone_before = True
            return 0.0
        if isinstance(error, NotSent | OutcomeUnknown | ServerError):
            return self._away.next_seconds()
        delay_seconds = self._backoff.next_seconds()
        if isinstance(error, TooManyRequests):
            maximum_seconds = self._pace.retry_after_maximum_seconds
            return max(bounded_wait(error.retry_after_seconds, maximum_seconds), delay_seconds)
        return delay_seconds
