"""Comparing what an informer holds with what the API server has.

A paged list of metadata alone is compared with the store. A difference means little at first: the
watch lags behind, and objects change while the pages are read. So every difference is checked again
once the watch has reached the version of the list, L:

    listed, and the store has one newer than L          fine: the watch is ahead of the list
    listed, and the store has another one up to L       asked about once more, as below; a list of
                                                        L would show it, unless storage was set back
    listed, and the store has an older one, or none     asked about once more, by name: gone or
                                                        unreadable is fine, anything else is lost
    in the store, not listed, of a version above L      fine: it came after the list
    in the store, not listed, of a version up to L      its deletion is lost
    both, of one version, with other content            storage was set back: versions that it had
                                                        given out are given out a second time

The content is looked at only where a restore is suspected (`doubtful`): that costs three times as
much, about 6 us more for each pod.

What is lost is lost for good: a watch that has passed L does not come back to it. Only a new list
repairs it. Where L itself is lower than what the store had reached before the list, the server's
storage was set back (`set_back.py`), and nothing more has to be compared.

An item whose name can't be read may be any of the objects that seem not to be listed. While there
is one, missing objects are not reported.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic

import msgspec

from k8s_scheduler.api.meta import Wire
from k8s_scheduler.kube.errors import UNREADABLE
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.resources import KubeObject, Resource, T, has_reached, is_newer
from k8s_scheduler.kube.waiting import Sleep
from k8s_scheduler.kube.watch.decoding import ObjectDecoder, Undecodable, read_list
from k8s_scheduler.kube.watch.informer import Informer
from k8s_scheduler.kube.watch.queries import list_query
from k8s_scheduler.lib.slices import SliceMeter

PAGE_LIMIT: Final = 500
# A quiet watch says how far it has come about once a minute.
REACH_SECONDS: Final = 150.0
_LOOK_SECONDS: Final = 0.5
_CHECK_EVERY: Final = 16
# More than so many are not asked about one by one, but looked for in another list.
_MOST_QUESTIONS: Final = 100


class _Metadata(Wire, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Item(Wire, frozen=True, gc=False):
    metadata: _Metadata


_decode_item = msgspec.json.Decoder(_Item).decode


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """An object that the store has wrong."""

    key: str
    problem: str


class _Listing:
    """The keys of a list's items, and whether the key of every item could be read."""

    def __init__(self) -> None:
        self.metadata: dict[str, _Metadata] = {}
        self.is_whole = True

    def take(self, raw: msgspec.Raw | bytes) -> _Metadata | None:
        metadata = _metadata(raw)
        if metadata is None:
            self.is_whole = False
        else:
            self.metadata[_key(metadata)] = metadata
        return metadata


class NotComparableError(Exception):
    """The watch did not reach the version of the list in time, so nothing can be compared."""


class Comparer(Generic[T]):
    """Compares one informer with the API server, whenever asked."""

    def __init__(
        self,
        transport: Transport,
        informer: Informer[T],
        *,
        meter: SliceMeter,
        sleep: Sleep = asyncio.sleep,
        timeout_seconds: float = 60.0,
    ) -> None:
        """Compare by requests that may each take so long."""
        self._timeout_seconds = timeout_seconds
        self._transport = transport
        self._informer = informer
        self._resource: Resource[T] = informer.resource
        self._decoder = ObjectDecoder(informer.resource)
        self._meter = meter
        self._sleep = sleep

    async def compare(self) -> list[Discrepancy]:
        """Return what the store has wrong. KubeError if the server can't be asked."""
        listing = _Listing()
        before = self._informer.resource_version
        version = await self._list(listing.take)
        if is_newer(before, version):
            return [Discrepancy("*", f"the API server is at version {version}, before {before}")]
        listed = listing.metadata
        suspects = await self._suspects(listed, whole=listing.is_whole)
        if not suspects:
            return []
        await self._wait_until(version)
        doubts = {key: self._judge(key, listed.get(key), version) for key in suspects}
        found = {key: doubt for key, doubt in doubts.items() if doubt is not None}
        present = await self._present({key: listed[key].uid for key in found if key in listed})
        return [found[key] for key in found if key not in listed or key in present]

    async def doubtful(self, settle_seconds: float) -> str:
        """Return the version of an object that makes it doubtful that the store is right.

        Empty if nothing does. What differs is judged when the watch has reached the list, or has
        shown nothing for `settle_seconds`: after a restore it may be silent for long. What the
        watch has yet to reach is no reason, nor is what has left since the list was made.
        """
        before = self._informer.resource_version
        listing, twins = _Listing(), list[str]()

        def take(raw: msgspec.Raw | bytes) -> None:
            metadata = listing.take(raw)
            if metadata is not None and self._is_twin(raw, metadata):
                twins.append(metadata.resource_version)

        version = await self._list(take)
        if twins:
            return twins[0]
        if is_newer(before, version):
            return version
        listed = listing.metadata
        suspects = await self._suspects(listed, whole=listing.is_whole)
        if not suspects:
            return ""
        await self._settle(version, settle_seconds)
        doubts = {key: self._doubt(key, listed.get(key), version) for key in suspects}
        found = {key: seen for key, seen in doubts.items() if seen}
        present = await self._present({key: listed[key].uid for key in found if key in listed})
        reasons = (seen for key, seen in found.items() if key not in listed or key in present)
        return next(reasons, "")

    def _is_twin(self, raw: msgspec.Raw | bytes, listed: _Metadata) -> bool:
        """Return whether the store has this very version of an object with other content.

        Whatever else happens meanwhile: in one history a version of an object never changes.
        """
        held = self._informer.store.get(_key(listed))
        if held is None or _identity(held) != (listed.uid, listed.resource_version):
            return False
        decoded = self._decoder.object(raw)
        return not isinstance(decoded, Undecodable) and decoded != held

    async def _settle(self, version: str, settle_seconds: float) -> None:
        quiet = waited = 0.0
        seen = self._informer.resource_version
        while not has_reached(seen, version) and quiet < settle_seconds and waited < REACH_SECONDS:
            await self._sleep(_LOOK_SECONDS)
            waited += _LOOK_SECONDS
            before, seen = seen, self._informer.resource_version
            quiet = quiet + _LOOK_SECONDS if seen == before else 0.0

    def _doubt(self, key: str, listed: _Metadata | None, version: str) -> str:
        """Return the version of an object that the watch will not mend; empty if it is right."""
        held = self._informer.store.get(key)
        if listed is None:
            if held is None or not has_reached(version, held.metadata.resource_version):
                return ""
            return held.metadata.resource_version
        if not has_reached(self._informer.resource_version, listed.resource_version):
            return ""
        if held is not None and self._is_ahead(held, listed, version):
            return ""
        return listed.resource_version

    def _is_ahead(self, held: KubeObject, listed: _Metadata, version: str) -> bool:
        """Return whether the store has what the list of `version` has, or what came after it."""
        uid, held_version = _identity(held)
        if (uid, held_version) == (listed.uid, listed.resource_version):
            return True
        return is_newer(held_version, version)

    async def _list(self, take: Callable[[msgspec.Raw | bytes], object]) -> str:
        """Have every item taken that the server has; return the version of the list."""
        work = self._meter.start("comparison")
        continue_: str | None = ""
        version = ""
        while continue_ is not None:
            work.finish()
            body = await self._get(
                list_query(self._resource, limit=PAGE_LIMIT, continue_=continue_)
            )
            work.restart()
            page = read_list(body)
            for index, raw in enumerate(page.items):
                take(raw)
                if index % _CHECK_EVERY == 0 and work.full():
                    await work.breathe()
            version = page.metadata.resource_version
            continue_ = page.metadata.continue_ or None
        work.finish()
        return version

    async def _get(self, query: Mapping[str, str]) -> bytes:
        response = await self._transport.request(
            "GET", self._resource.list_path, query=query, timeout_seconds=self._timeout_seconds
        )
        if response.status != 200:
            raise response.error()
        return response.body

    async def _suspects(self, listed: Mapping[str, _Metadata], *, whole: bool) -> list[str]:
        work = self._meter.start("comparison")
        suspects = []
        for index, (key, metadata) in enumerate(listed.items()):
            held = self._informer.store.get(key)
            if held is None or _identity(held) != (metadata.uid, metadata.resource_version):
                suspects.append(key)
            if index % _CHECK_EVERY == 0 and work.full():
                await work.breathe()
        if whole:
            suspects += [key for key in list(self._informer.store) if key not in listed]
        work.finish()
        return suspects

    async def _wait_until(self, version: str) -> None:
        left = round(REACH_SECONDS / _LOOK_SECONDS)
        while not has_reached(self._informer.resource_version, version):
            left -= 1
            if left < 0:
                raise NotComparableError(
                    f"the watch of {self._resource.label} has not reached version {version}"
                )
            await self._sleep(_LOOK_SECONDS)

    def _judge(self, key: str, listed: _Metadata | None, version: str) -> Discrepancy | None:
        held = self._informer.store.get(key)
        if listed is None:
            if held is None or not has_reached(version, held.metadata.resource_version):
                return None
            return Discrepancy(key, "its deletion was not seen")
        if held is None:
            return Discrepancy(key, "it was not seen")
        uid, held_version = _identity(held)
        if uid == listed.uid and self._is_ahead(held, listed, version):
            return None
        if uid != listed.uid and not has_reached(version, held_version):
            # Made anew since the list.
            return None
        return Discrepancy(key, "a change of it was not seen")

    async def _present(self, uids: Mapping[str, str]) -> set[str]:
        """Return which of these objects are there still, and make sense.

        Many may have left since the list, with a job or a namespace that ended.
        """
        if len(uids) <= _MOST_QUESTIONS:
            return {key for key, uid in uids.items() if await self._is_there(key, uid)}
        present = set()

        def take(raw: msgspec.Raw | bytes) -> None:
            metadata = _metadata(raw)
            if metadata is None or uids.get(_key(metadata)) != metadata.uid:
                return
            if not isinstance(self._decoder.object(raw), Undecodable):
                present.add(_key(metadata))

        await self._list(take)
        return present

    async def _is_there(self, key: str, uid: str) -> bool:
        namespace, _, name = key.rpartition("/")
        resource = self._resource
        selectors = [resource.field_selector, f"metadata.name={name}"]
        if namespace:
            selectors.append(f"metadata.namespace={namespace}")
        body = await self._get({"fieldSelector": ",".join(filter(None, selectors))})
        for raw in read_list(body).items:
            decoded = self._decoder.object(raw)
            if not isinstance(decoded, Undecodable):
                return decoded.metadata.uid == uid
        return False


def _metadata(raw: bytes | msgspec.Raw) -> _Metadata | None:
    """Return the key of an item; None if even that can't be read."""
    try:
        return _decode_item(raw).metadata
    except UNREADABLE:
        return None


def _identity(held: KubeObject) -> tuple[str, str]:
    return held.metadata.uid, held.metadata.resource_version


def _key(metadata: _Metadata) -> str:
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
