"""How far a reflector has come, and the waits until it has come further.

Each cause of a list (the start, lost history, a take-over) draws a ticket, and a list serves only
the tickets that were drawn before it began. So whether a list is due is one comparison, and a list
that was already under way when fresh state was asked for is never mistaken for fresh.

A wait for a list also ends when the server says that it does not have the resource: there is no
newer state. The list stays due all the same, because the resource may be added later.

`resource_version` moves only to points up to which everything has been applied: with each event
of a watch, but for a list only at its end, since its items come in no order of versions.

Versions of one resource only grow, unless the storage of the API server was restored from an older
snapshot. Then nothing that was applied before counts: `doubt` draws a ticket, and until a list has
served it a lower version is expected and not reported.
"""

import asyncio
from collections.abc import Callable

from k8s_scheduler.kube.resources import has_reached, is_newer


class Progress:
    """Versions and tickets of one reflector."""

    def __init__(self, on_answer: Callable[[], None]) -> None:
        self._resource_version = ""
        self._on_answer = on_answer
        self._drawn = 1
        self._served = 0
        self._answered = 0
        self._doubted = 0
        self._changed = asyncio.Event()
        # Set with the next change of the version; None while there is no wait for one.
        self._moved: asyncio.Event | None = None

    @property
    def resource_version(self) -> str:
        """The newest version up to which everything is applied; empty before the first list."""
        return self._resource_version

    @resource_version.setter
    def resource_version(self, version: str) -> None:
        self._resource_version = version
        if self._moved is not None:
            self._moved.set()
            self._moved = None

    @property
    def list_due(self) -> bool:
        return self._served < self._drawn

    def want_list(self) -> int:
        self._drawn += 1
        return self._drawn

    def doubt(self) -> None:
        """Trust nothing that is applied so far: the storage of the server was set back."""
        self._doubted = self.want_list()

    @property
    def is_doubted(self) -> bool:
        return self._served < self._doubted

    async def wait_until_trusted(self) -> None:
        await self.wait_for(self._doubted)

    def goes_back(self, version: str) -> bool:
        """Return whether a version shows that the storage was set back, which was not known."""
        return not self.is_doubted and is_newer(self._resource_version, version)

    async def reach(self, version: str) -> None:
        """Return once everything up to `version` is applied; the caller limits the time."""
        while not has_reached(self._resource_version, version):
            if self._moved is None:
                self._moved = asyncio.Event()
            await self._moved.wait()

    def begin_list(self) -> int:
        """Return the newest ticket, which the list that begins now will serve."""
        return self._drawn

    def complete_list(self, ticket: int, resource_version: str) -> None:
        """Take note of a list that is applied in full."""
        self.resource_version = resource_version
        self._served = ticket
        self._answer(ticket)

    def complete_absence(self, ticket: int) -> None:
        """Take note that there was nothing to list: the server does not have the resource."""
        self._answer(ticket)

    async def wait_for(self, ticket: int) -> None:
        """Return once a list has served this ticket, or could not because there is none."""
        while self._answered < ticket:
            await self._changed.wait()

    def _answer(self, ticket: int) -> None:
        self._answered = ticket
        self._on_answer()
        self._changed.set()
        self._changed = asyncio.Event()
