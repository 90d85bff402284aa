"""Gives back rows of nodes that are gone, and with them all that is kept by row.

A table that becomes shorter is as good as a new one: arrays that are as long as it was, and logs of
its rows, say nothing any more. So nothing of it is mended. The state drops its own and forgets its
log of facts (`Cache.shorten`), by which every evaluation and every outcome of a dry run finds that
it has to be made anew; they are dropped here, because there is no other use for the memory.
Decisions do not depend on any of it.
"""

from k8s_scheduler.core.engine.preemption.post_filter import MakingRoom
from k8s_scheduler.core.engine.shapes.shape_cache import ShapeCache
from k8s_scheduler.core.state.cache import Cache


def shorten(cache: Cache, shapes: ShapeCache, making_room: MakingRoom) -> None:
    """Shorten the table of nodes if much of it is of no use: at each tick."""
    if cache.shorten():
        shapes.clear()
        making_room.searches.forget_rows()
