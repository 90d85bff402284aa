"""Leases of others: found by a label, read in small pages, at most some hundred.

A user with the right to write Leases in one namespace can set the label, and make the object as
large as the server allows. So a page holds few Leases, a look ends after MOST_LEASES, and little is
kept of each. The lists are consistent: what was written before a look began is in its answer.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from k8s_scheduler.api.meta import ListMeta
from k8s_scheduler.kube.errors import UNREADABLE, TransportError
from k8s_scheduler.kube.http.protocol import Transport

RESOURCE: Final = "leases.coordination.k8s.io"
# An object may have 1.5 MiB: an answer is decoded in one go, which must not hold up the loop.
PAGE_LEASES: Final = 10
MOST_LEASES: Final = 200
# Of texts that others write; a holder's identity is a host's name and a uuid.
_MOST_CHARACTERS: Final = 300
MOST_NOTE_CHARACTERS: Final = 8192
_ROOT: Final = "/apis/coordination.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class OtherLease:
    """What matters of a Lease; `note` is empty where there is none, or one that is too long."""

    namespace: str
    name: str
    uid: str
    version: str
    holder: str
    # As the holder wrote it; None where it is missing, or not above zero.
    duration_seconds: float | None
    note: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class LeaseLook:
    """What a look has shown; not complete where there were more Leases than a look takes."""

    leases: tuple[OtherLease, ...]
    complete: bool = True


# A malformed Lease must not hide the others: each one is decoded by itself.
class _Item(msgspec.Struct, frozen=True):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class _Page(msgspec.Struct, frozen=True):
    metadata: ListMeta = ListMeta()
    items: list[_Item] | None = None


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None


_decode_page: Final = msgspec.json.Decoder(_Page).decode
_decode_metadata: Final = msgspec.json.Decoder(_Metadata).decode
_decode_spec: Final = msgspec.json.Decoder(_Spec | None).decode


async def labelled_leases(
    transport: Transport,
    label: str,
    *,
    note: str,
    namespaces: Iterable[str] = (),
    timeout_seconds: float,
) -> LeaseLook:
    """Return the Leases with a label, in some namespaces or in all; raises KubeError."""
    paths = [f"{_ROOT}/namespaces/{name}/leases" for name in namespaces] or [f"{_ROOT}/leases"]
    found: list[OtherLease] = []
    for path in paths:
        continue_ = ""
        while True:
            query = {"labelSelector": label, "limit": str(PAGE_LEASES)}
            if continue_:
                query["continue"] = continue_
            page = await _page(transport, path, query, timeout_seconds=timeout_seconds)
            found += _leases(page, note)
            continue_ = page.metadata.continue_ or ""
            if len(found) >= MOST_LEASES:
                return LeaseLook(tuple(found[:MOST_LEASES]), complete=not continue_)
            if not continue_:
                break
    return LeaseLook(tuple(found))


async def one_lease(
    transport: Transport, namespace: str, name: str, *, note: str, timeout_seconds: float
) -> OtherLease | None:
    """Return one Lease by its name, under the right to list; raises KubeError."""
    path = f"{_ROOT}/namespaces/{namespace}/leases"
    query = {"fieldSelector": f"metadata.name={name}", "limit": "1"}
    page = await _page(transport, path, query, timeout_seconds=timeout_seconds)
    return next((each for each in _leases(page, note) if each.name == name), None)


async def _page(
    transport: Transport, path: str, query: dict[str, str], *, timeout_seconds: float
) -> _Page:
    response = await transport.request("GET", path, query=query, timeout_seconds=timeout_seconds)
    if not response.ok:
        raise response.error()
    try:
        return _decode_page(response.body)
    except UNREADABLE as error:
        raise TransportError(f"the answer is no list of leases: {error}") from error


def _leases(page: _Page, note: str) -> Iterator[OtherLease]:
    for item in page.items or ():
        try:
            metadata, spec = _decode_metadata(item.metadata), _decode_spec(item.spec) or _Spec()
        except UNREADABLE:
            continue  # the server stores no such Lease, and nothing can be said of it
        text = (metadata.annotations or {}).get(note, "")
        duration = spec.lease_duration_seconds
        yield OtherLease(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            version=metadata.resource_version,
            holder=(spec.holder_identity or "")[:_MOST_CHARACTERS],
            duration_seconds=float(duration) if duration and duration > 0 else None,
            note=text if len(text) <= MOST_NOTE_CHARACTERS else "",
        )
