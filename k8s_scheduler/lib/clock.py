"""A clock that tells the time of day and never jumps.

The wall clock is read once; from then on a monotonic clock is added to it. Differences are
always right, and the values still mean something to a reader.
"""

import time
from collections.abc import Callable


class SteadyClock:
    """Seconds since the epoch, as of the start plus what has passed since."""

    __slots__ = ("_monotonic", "_offset")

    def __init__(
        self,
        *,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._offset = wall() - monotonic()

    def __call__(self) -> float:
        return self._offset + self._monotonic()
