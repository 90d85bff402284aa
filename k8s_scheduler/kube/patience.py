"""Noticing when a watch has gone silent, and cutting one short.

`Patience` is the one deadline of an open watch: it runs out when nothing has come for too long,
or at once when somebody wants a fresh list. It measures the waiting for bytes alone: a consumer
that is slow with its work makes no watch look dead.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from k8s_scheduler.kube.streams import STALLED, StreamError


class Patience:
    """The deadline of one open watch at a time."""

    def __init__(self, stall_seconds: float) -> None:
        self._stall_seconds = stall_seconds
        self._timeout: asyncio.Timeout | None = None
        self._interrupted = False

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """Run a watch; ends quietly when interrupted, raises StreamError when it stalls."""
        self._interrupted = False
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

    def interrupt(self) -> None:
        """End the guarded watch as soon as it waits for something."""
        self._interrupted = True
        self._reschedule(asyncio.get_running_loop().time())

    async def next_chunk(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """Return the next chunk, or None at the end; the time to work on it is not counted."""
        if not self._interrupted:
            self._reschedule(asyncio.get_running_loop().time() + self._stall_seconds)
        chunk = await anext(chunks, None)
        if not self._interrupted:
            self._reschedule(None)
        return chunk

    def _reschedule(self, when: float | None) -> None:
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(when)
