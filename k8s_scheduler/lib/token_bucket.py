"""A token bucket: pure arithmetic on a given time."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class TokenBucket:
    """Tokens that come back at a rate, up to a burst; it starts full."""

    rate_per_second: float
    burst: float
    updated_at: float
    _tokens: float = field(init=False)

    def __post_init__(self) -> None:
        self._tokens = self.burst

    def take(self, now: float) -> bool:
        return self.reserve(now, longest_seconds=0.0) is not None

    def reserve(self, now: float, *, longest_seconds: float) -> float | None:
        """Take a token and return the seconds until it is there; None, and none taken, if too long.

        No tokens are added when the clock goes back.
        """
        elapsed = max(0.0, now - self.updated_at)
        self._tokens = min(self.burst, self._tokens + elapsed * self.rate_per_second)
        self.updated_at = now
        wait_seconds = max(0.0, (1.0 - self._tokens) / self.rate_per_second)
        if wait_seconds > longest_seconds:
            return None
        self._tokens -= 1.0
        return wait_seconds
