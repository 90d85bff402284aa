"""The inside of a core, for tests that look at what no message tells.

The one place that knows under which names a core keeps its parts: where these are regrouped, only
this file changes. Ask `core.holdings`, `core.tally` or what comes out first; they are public.

    assert inside(h.core).queue.parked
"""

from typing import Any


class Inside:
    """The parts of one core as they are now."""

    __slots__ = ("_core",)

    def __init__(self, core: Any) -> None:
        self._core = core

    @property
    def cache(self) -> Any:
        return self._core._cache

    @property
    def queue(self) -> Any:
        return self._core._queue

    @property
    def shapes(self) -> Any:
        return self._core._shapes

    @property
    def flights(self) -> Any:
        return self._core._state.in_flight

    @property
    def out(self) -> Any:
        return self._core._out

    @property
    def evictions(self) -> Any:
        return self._core._evictions

    @property
    def state(self) -> Any:
        return self._core._state

    @property
    def profiles(self) -> Any:
        return self._core._state.profiles

    @property
    def cycle(self) -> Any:
        return self._core._cycle

    @property
    def parked(self) -> Any:
        return self._core._parked

    @property
    def post_filter(self) -> Any:
        return self._core._post_filter


def inside(core: Any) -> Inside:
    return Inside(core)
