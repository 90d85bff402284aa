"""Who may have the API server asked about them, how often, and in what order.

Every pod of a cluster can reach the port and show a token, made up or its own. Each token that is
not known yet costs the API server a review, in the share of requests that the daemon itself needs.
So reviews are made in two lanes, with limits of their own:

    regular    a token or an address that was let in within the last hours: scrapers
    stranger   everything else; also limited by rate, for each address and in all

Strangers can fill their own lane only. A scraper whose token is replaced is still known by its
address, and one behind the address of a hostile client is still known by its token.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from k8s_scheduler.lib.expiring import ExpiringCache
from k8s_scheduler.lib.token_bucket import TokenBucket

REGULAR_SECONDS: Final = 2 * 3600.0
REVIEWS_AT_ONCE: Final = 4
# More than these wait for nothing but overload.
WAITING_MOST: Final = 32
STRANGERS_PER_SECOND: Final = 20.0
PER_ADDRESS_PER_SECOND: Final = 5.0
PER_ADDRESS_BURST: Final = 20.0
_MOST_KNOWN: Final = 1024
# A bucket that was not used for so long is full again.
_BUCKET_SECONDS: Final = 60.0


class BusyError(Exception):
    """More reviews are asked for than are made."""


class _Lane:
    """A few reviews at a time, and a few more that wait."""

    def __init__(self) -> None:
        self._asking = asyncio.Semaphore(REVIEWS_AT_ONCE)
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        if self._waiting >= WAITING_MOST:
            raise BusyError
        self._waiting += 1
        try:
            async with self._asking:
                yield
        finally:
            self._waiting -= 1


class ReviewTurns:
    """Lets reviews be made one lane at a time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._regulars = _Lane()
        self._strangers = _Lane()
        self._tokens: ExpiringCache[bytes, bool] = ExpiringCache(size=_MOST_KNOWN, clock=clock)
        self._addresses: ExpiringCache[str, bool] = ExpiringCache(size=_MOST_KNOWN, clock=clock)
        self._all = TokenBucket(STRANGERS_PER_SECOND, 2 * STRANGERS_PER_SECOND, clock())
        self._buckets: ExpiringCache[str, TokenBucket] = ExpiringCache(
            size=_MOST_KNOWN, clock=clock
        )

    def let_in(self, token: bytes, address: str) -> None:
        """Remember a client that was shown a page, by its token's digest and its address."""
        if token:
            self._tokens.put(token, value=True, seconds=REGULAR_SECONDS)
        self._addresses.put(address, value=True, seconds=REGULAR_SECONDS)

    @asynccontextmanager
    async def turn(self, token: bytes, address: str) -> AsyncIterator[None]:
        """Wait for a turn to make one review; BusyError if there are too many of the kind."""
        known_token = bool(token) and self._tokens.get(token) is not None
        if not known_token and not self._bucket(address).take(self._clock()):
            raise BusyError
        if known_token or self._addresses.get(address) is not None:
            lane = self._regulars
        elif self._all.take(self._clock()):
            lane = self._strangers
        else:
            raise BusyError
        async with lane.turn():
            yield

    def _bucket(self, address: str) -> TokenBucket:
        bucket = self._buckets.get(address)
        if bucket is None:
            bucket = TokenBucket(PER_ADDRESS_PER_SECOND, PER_ADDRESS_BURST, self._clock())
        self._buckets.put(address, bucket, seconds=_BUCKET_SECONDS)
        return bucket
