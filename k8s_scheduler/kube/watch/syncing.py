"""Watching until every resource is complete, while the set of informers may change.

A change of the configuration drops informers. An informer that was not complete by then never will
be, and a caller that waited for it by name would wait for ever. So the set is asked for again
whenever one informer is complete or dropped; a dropped one does not count as complete.
"""

from collections.abc import Callable, Iterable
from typing import Any

from k8s_scheduler.kube.waiting import first_of
from k8s_scheduler.kube.watch.informer import Informer
from k8s_scheduler.lib.aiotasks import Supervisor


async def all_synced(watched: Callable[[], Iterable[Informer[Any]]]) -> None:
    """Return once every informer that `watched` then returns is complete.

    `watched` must not return a dropped informer: take it out of the set first, then drop it.
    """
    while missing := [informer for informer in watched() if not informer.synced.is_set()]:
        await first_of(missing[0].synced.wait(), missing[0].dropped.wait())


async def watch_all(tasks: Supervisor, watched: Callable[[], Iterable[Informer[Any]]]) -> None:
    """Start every informer that does not run yet and return once all are complete."""
    for informer in watched():
        name = informer.resource.label
        if name not in tasks:
            tasks.start(name, informer.run())
    await all_synced(watched)
