"""Items that wait for a time, and can be woken before it is over."""

from collections.abc import Callable
from typing import Generic, TypeVar

from k8s_scheduler.kube.waiting import Sleep

Item = TypeVar("Item")


class _Wait(Generic[Item]):
    """One wait. The same item can wait again later, so waits are told apart by identity."""

    __slots__ = ("item",)

    def __init__(self, item: Item) -> None:
        self.item = item


class InterruptibleWaits(Generic[Item]):
    """The waits under way, the longest one first; `wake` gets each item once per wait."""

    def __init__(self, wake: Callable[[Item], None], sleep: Sleep) -> None:
        self._wake = wake
        self._sleep = sleep
        # In the order in which they began; stands for an ordered set.
        self._waits: dict[_Wait[Item], None] = {}

    def __len__(self) -> int:
        return len(self._waits)

    async def wait(self, item: Item, seconds: float) -> None:
        """Wake the item when the time is over, unless it was woken before."""
        wait = _Wait(item)
        self._waits[wait] = None
        await self._sleep(seconds)
        # A wait that was ended early must not end a later one of the same item.
        if wait in self._waits:
            self._end(wait)

    def wake_first(self) -> None:
        """Wake the item that has waited longest, if any waits."""
        if self._waits:
            self._end(next(iter(self._waits)))

    def wake_all(self) -> None:
        for wait in list(self._waits):
            self._end(wait)

    def _end(self, wait: _Wait[Item]) -> None:
        del self._waits[wait]
        self._wake(wait.item)
