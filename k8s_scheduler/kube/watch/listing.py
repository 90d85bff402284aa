"""Listing in pages, for servers that do not stream lists.

All pages of a list are of one moment; the token that leads from one to the next expires when the
server forgets that moment (410). Pages of two moments must not be put together, so the list then
starts over, and in one piece: a server that forgets faster than we can turn pages would otherwise
never be listed.

A list without a resourceVersion is consistent: its version says up to where the server has written.
One object is enough to learn that (`current_version`). No selector is sent along: with one, the
server may have to read many objects to find the first.
"""

from collections.abc import Iterator
from typing import Final, Generic

import msgspec

from k8s_scheduler.kube.errors import Gone
from k8s_scheduler.kube.resources import T
from k8s_scheduler.kube.watch.decoding import Undecodable, read_list
from k8s_scheduler.kube.watch.queries import list_query
from k8s_scheduler.kube.watch.reflector_parts import CHECK_EVERY, ReflectorParts
from k8s_scheduler.kube.watch.relist import Relist
from k8s_scheduler.kube.watch.streams import MALFORMED, StreamError
from k8s_scheduler.lib.slices import Slice
from k8s_scheduler.obs.metrics import KubeMetrics


class PageLister(Generic[T]):
    """Makes one list after another."""

    def __init__(self, parts: ReflectorParts[T], metrics: KubeMetrics) -> None:
        self._parts = parts
        plural = parts.resource.label
        self._paged = metrics.reflector_lists.labels(plural, "paged")
        self._full = metrics.reflector_lists.labels(plural, "full")

    async def run(self) -> None:
        """List everything and bring the store up to it; raises KubeError when it fails."""
        ticket = self._parts.progress.begin_list()
        self._paged.inc()
        try:
            await self._list(ticket, limit=self._parts.pace.page_limit)
        except Gone:
            self._full.inc()
            await self._list(ticket, limit=0)

    async def _list(self, ticket: int, *, limit: int) -> None:
        relist = Relist(self._parts.store)
        work = self._parts.start_slice()
        continue_: str | None = ""
        resource_version = ""
        while continue_ is not None:
            body = await self._fetch(limit, continue_)
            work.restart()
            page = read_list(body)
            await self._take(page.items, relist, work)
            resource_version = page.metadata.resource_version
            continue_ = page.metadata.continue_ or None
            work.finish()
        if not resource_version:
            raise StreamError(MALFORMED, "the list has no resourceVersion")
        work.restart()
        await relist.finish(work)
        work.finish()
        self._parts.complete_list(ticket, resource_version, went_back=relist.went_back)

    async def _fetch(self, limit: int, continue_: str) -> bytes:
        parts = self._parts
        response = await parts.transport.request(
            "GET",
            parts.resource.list_path,
            query=list_query(parts.resource, limit=limit, continue_=continue_),
            timeout_seconds=parts.pace.list_timeout_seconds,
        )
        if response.status != 200:
            raise response.error()
        return response.body

    async def _take(
        self, items: Iterator[bytes | msgspec.Raw], relist: Relist[T], work: Slice
    ) -> None:
        parts = self._parts
        for index, raw in enumerate(items):
            decoded = parts.decoder.object(raw)
            if isinstance(decoded, Undecodable):
                parts.undecodable.report(decoded)
                relist.keep(decoded.key, uid=decoded.uid)
            else:
                relist.put(decoded)
            if index % CHECK_EVERY == 0 and work.full():
                await work.breathe()


_ONE: Final = {"limit": "1"}


async def current_version(parts: ReflectorParts[T]) -> str:
    """Return the version up to which the server has written now; KubeError if it does not say."""
    response = await parts.transport.request(
        "GET",
        parts.resource.list_path,
        query=_ONE,
        timeout_seconds=parts.pace.probe_timeout_seconds,
    )
    if response.status != 200:
        raise response.error()
    version = read_list(response.body).metadata.resource_version
    if not version:
        raise StreamError(MALFORMED, "the list has no resourceVersion")
    return version
