"""How many events may be written: per object, and in all. Pure arithmetic on a given time."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(slots=True)
class TokenBucket:
    """Tokens that come back at a rate, up to a burst."""

    rate_per_second: float
    burst: float
    tokens: float
    updated_at: float

    def take(self, now: float) -> bool:
        """Take a token if there is one."""
        self._refill(now)
        if self.tokens < 1.0:
            return False
        self.tokens -= 1.0
        return True

    def reserve(self, now: float) -> float:
        """Take a token now or on credit; return the seconds until it is really there."""
        self._refill(now)
        self.tokens -= 1.0
        return max(0.0, -self.tokens / self.rate_per_second)

    def _refill(self, now: float) -> None:
        elapsed = max(0.0, now - self.updated_at)
        self.tokens = min(self.burst, self.tokens + elapsed * self.rate_per_second)
        self.updated_at = now


class ObjectLimits:
    """One bucket per object, for the objects heard of last.

    An object that is forgotten starts with a full bucket again; the bound on memory is worth it.
    """

    def __init__(
        self, *, burst: int = 25, refill_seconds: float = 300.0, objects: int = 4096
    ) -> None:
        self._burst = float(burst)
        self._rate_per_second = 1.0 / refill_seconds
        self._objects = objects
        self._buckets: OrderedDict[Hashable, TokenBucket] = OrderedDict()

    def allows(self, key: Hashable, now: float) -> bool:
        """Return whether one more event about this object may be written, and count it."""
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = TokenBucket(self._rate_per_second, self._burst, self._burst, now)
            self._buckets[key] = bucket
            if len(self._buckets) > self._objects:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
        return bucket.take(now)
