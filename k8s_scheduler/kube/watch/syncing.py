"""Waiting until all that is watched is known, while what is watched may change.

A change of the configuration drops informers. One that was not complete by then never will be, and
who waited for it by name would wait for ever. So what is waited for is asked for anew whenever one
of them is complete or dropped; and only who is complete counts as that.
"""

from collections.abc import Callable, Iterable
from typing import Any

from k8s_scheduler.kube.waiting import first_of
from k8s_scheduler.kube.watch.informer import Informer


async def all_synced(watched: Callable[[], Iterable[Informer[Any]]]) -> None:
    """Return once everything is complete that `watched` returns then.

    It must not return what is dropped: leave it out first, drop it then.
    """
    while missing := [informer for informer in watched() if not informer.synced.is_set()]:
        await first_of(missing[0].synced.wait(), missing[0].dropped.wait())
