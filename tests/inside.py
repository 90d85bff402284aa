"""The inside of a core, for tests that look at what no message tells.

The one place that knows under which names a core keeps its parts: where these are regrouped, only
this file changes. Ask `core.holdings`, `core.tally` or what comes out first; they are public.

    assert inside(h.core).queue.parked
"""

from typing import Any


def _part(name: str) -> Any:
    return property(lambda self: getattr(self._core, name))


def _table(name: str) -> Any:
    return property(lambda self: getattr(self._core._state, name))


class Inside:
    """The parts of one core as they are now."""

    __slots__ = ("_core",)

    def __init__(self, core: Any) -> None:
        self._core = core

    attempts = _part("_attempts")
    binding_cycle = _part("_binding_cycle")
    cycle = _part("_cycle")
    evictions = _part("_evictions")
    judge = _part("_judge")
    parked = _part("_parked")
    post_filter = _part("_post_filter")
    shapes = _part("_shapes")
    state = _part("_state")

    cache = _table("cache")
    flights = _table("in_flight")
    meter = _table("meter")
    out = _table("out")
    profiles = _table("profiles")
    queue = _table("queue")
    suspensions = _table("suspensions")
    unconfirmed = _table("unconfirmed")


def inside(core: Any) -> Inside:
    return Inside(core)
