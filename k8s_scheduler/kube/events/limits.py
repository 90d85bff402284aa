"""How many events may be written about one object. Pure arithmetic on a given time."""

from collections import OrderedDict
from collections.abc import Hashable

from k8s_scheduler.lib.token_bucket import TokenBucket


class ObjectLimits:
    """One bucket per object, of one event at least, for the objects heard of last.

    An object that is forgotten starts with a full bucket again; the bound on memory is worth it.
    """

    def __init__(
        self, *, burst: int = 25, refill_seconds: float = 300.0, objects: int = 4096
    ) -> None:
        self._burst = float(burst)
        self._rate_per_second = 1.0 / refill_seconds
        self._objects = objects
        # Of most objects there is one event: its time stands for a bucket of which one was taken.
        self._buckets: OrderedDict[Hashable, TokenBucket | float] = OrderedDict()

    def allows(self, key: Hashable, now: float) -> bool:
        """Return whether one more event about this object may be written, and count it."""
        bucket = self._buckets.get(key)
        if bucket is None:
            self._buckets[key] = now
            if len(self._buckets) > self._objects:
                self._buckets.popitem(last=False)
            return True
        self._buckets.move_to_end(key)
        if not isinstance(bucket, TokenBucket):
            first_at = bucket
            bucket = self._buckets[key] = TokenBucket(self._rate_per_second, self._burst, first_at)
            bucket.take(first_at)
        return bucket.take(now)
