"""Whether the API server is away, and the binds that wait until it is back.

                     a call without an answer: its bind waits here
       HEARD ─────────────────────────────────────────────────────► AWAY, scouting
         ▲                                                           │  │
         │        any successful answer: all that wait are woken     │  │ `SCOUTS` seconds, or
         ├───────────────────────────────────────────────────────────┘  │ none waits any more
         │                                                              ▼
         └────────────────────────────────────────────────────────── AWAY, quiet

While scouting, the bind that has waited longest is woken every `SCOUT_SECONDS` and asks the server.
Of a thousand waiting binds one asks every moment by itself, but a few, each of which waits for up
to ten seconds, would learn late that the server is back. After `SCOUTS` times every bind asks only
when its own wait is over: a server that is away for long does not return sooner for being asked.

Beside that, for `starting_seconds` after the last trouble the server may be starting. A server that
has just started answers 403 until it has read its roles, so a 403 is no verdict then.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.waiting import Timing
from k8s_scheduler.kube.write.interruptible_waits import InterruptibleWaits

SCOUT_SECONDS: Final = 1.0
SCOUTS: Final = 60

Item = TypeVar("Item")
Start = Callable[[Callable[[], Awaitable[None]]], None]


class Outage(Generic[Item]):
    """Hears of every answer and of every call without one; wakes what waits."""

    def __init__(
        self,
        wake: Callable[[Item], None],
        *,
        start: Start,
        timing: Timing,
        starting_seconds: float,
    ) -> None:
        """`wake` gets each item whose wait is over; `start` runs a task in the background."""
        self._start = start
        self._clock = timing.clock
        self._sleep = timing.sleep
        self._starting_seconds = starting_seconds
        self._waits = InterruptibleWaits(wake, timing.sleep)
        self._is_scouting = False
        # Restored by a successful answer.
        self._scouts_left = SCOUTS
        self._trouble_at = float("-inf")

    @property
    def may_be_starting(self) -> bool:
        """Whether the server had trouble so lately that it may not know its roles yet."""
        return self._clock() - self._trouble_at < self._starting_seconds

    def had_trouble(self) -> None:
        """Take note that the server did not answer, or not as a healthy one does."""
        self._trouble_at = self._clock()

    def answered(self, response: Response) -> None:
        """Take note of an answer; after a success nothing needs to wait for the server."""
        if response.ok:
            self._scouts_left = SCOUTS
            self._waits.wake_all()

    async def wait(self, item: Item, seconds: float) -> None:
        """Wake an item after a time, or as soon as the server is back."""
        if not self._is_scouting:
            self._is_scouting = True
            self._start(self._scout)
        await self._waits.wait(item, seconds)

    async def _scout(self) -> None:
        while self._waits and self._scouts_left:
            self._scouts_left -= 1
            await self._sleep(SCOUT_SECONDS)
            self._waits.wake_first()
        self._is_scouting = False
