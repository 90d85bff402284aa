"""How many events may be written about one object. Pure arithmetic on a given time."""

from collections import OrderedDict
from collections.abc import Hashable

from k8s_scheduler.lib.token_bucket import TokenBucket


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
            bucket = TokenBucket(self._rate_per_second, self._burst, now)
            self._buckets[key] = bucket
            if len(self._buckets) > self._objects:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
        return bucket.take(now)
