"""The inside of a core, for tests that look at what no message tells.

The one place that knows under which names a core keeps its parts: where these are regrouped, only
this file changes. Ask `core.holdings`, `core.tally` or what comes out first; they are public.

    assert inside(h.core).queue.parked
"""

from typing import Any


def _part(name: str) -> Any:
    return property(lambda self: getattr(self._core, name))


class Inside:
    """The parts of one core as they are now."""

    __slots__ = ("_core",)

    def __init__(self, core: Any) -> None:
        self._core = core

    attempts = _part("_attempts")
    cache = _part("_cache")
    cycle = _part("_cycle")
    departure = _part("_departure")
    evictions = _part("_evictions")
    flights = _part("_flights")
    judge = _part("_judge")
    making_room = _part("_making_room")
    meter = _part("_meter")
    out = _part("_out")
    parked = _part("_parked")
    parts = _part("_parts")
    profiles = _part("_profiles")
    queue = _part("_queue")
    shapes = _part("_shapes")
    suspensions = _part("_suspensions")
    timed = _part("_timed")
    unconfirmed = _part("_unconfirmed")


def inside(core: Any) -> Inside:
    return Inside(core)
