"""Noticing when a watch has gone silent, and cutting one short.

`StallGuard` is the one deadline of an open watch: it runs out when nothing has come for too long,
or at once when a fresh list is wanted. It measures only the wait for bytes: a slow consumer does
not make a watch look dead.

Chunks come by the thousand and silence is rare, so there is one timer, which is not moved with
every chunk: when it fires it checks whether there was silence all along, and sets itself again for
the rest of the time.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from k8s_scheduler.kube.watch.streams import STALLED, StreamError


class StallGuard:
    """The deadline of one open watch at a time."""

    def __init__(self, stall_seconds: float) -> None:
        self._stall_seconds = stall_seconds
        self._timeout: asyncio.Timeout | None = None
        self._interrupted = False
        # Until when the next chunk has to come; None while none is waited for.
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """Run a watch; ends quietly when interrupted, raises StreamError when it stalls."""
        self._interrupted = False
        self._deadline = None
        timeout = asyncio.timeout(None)
        try:
            async with timeout:
                self._timeout = timeout
                yield
        except TimeoutError as error:
            if not timeout.expired():
                raise
            if not self._interrupted:
                raise StreamError(
                    STALLED, f"nothing came for {self._stall_seconds:.0f} s, not even a bookmark"
                ) from error
        finally:
            self._timeout = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def interrupt(self) -> None:
        """End the guarded watch as soon as it waits for something."""
        self._interrupted = True
        self._run_out()

    async def next_chunk(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """Return the next chunk, or None at the end; the time to work on it is not counted."""
        loop = asyncio.get_running_loop()
        self._deadline = loop.time() + self._stall_seconds
        if self._timer is None:
            self._timer = loop.call_at(self._deadline, self._look)
        chunk = await anext(chunks, None)
        self._deadline = None
        return chunk

    def _look(self) -> None:
        """Check whether the time is over; the next wait sets the timer again."""
        self._timer = None
        if self._deadline is None:
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= self._deadline:
            self._run_out()
        else:
            self._timer = loop.call_at(self._deadline, self._look)

    def _run_out(self) -> None:
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())
