"""From bytes to typed objects, one at a time, so that one bad object spoils no other.

A watch event is decoded whole into its typed form, which is the cheapest way. Only what does not
fit that form is looked at a second time as an envelope around raw bytes: an ERROR event, a
bookmark of a kind that cannot be empty, or an object we cannot read. Lists are decoded as a
sequence of raw items for the same reason.

What cannot be read comes back as `Undecodable` with as much identity as could be had; nothing
here raises for a single object. Bytes that are no event at all raise `StreamError`: then the
stream is not to be trusted any further.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import getitem
from typing import Any, Final, Generic, TypeAlias, cast

import msgspec

from k8s_scheduler.api.annotations import leave_out_unread
from k8s_scheduler.api.custom_objects import custom_reader
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import Labels, ListMeta, ObjectMeta, Wire, key_of
from k8s_scheduler.kube.errors import UNREADABLE, ApiError, api_error
from k8s_scheduler.kube.resources import Resource, T
from k8s_scheduler.kube.watch.big_lists import split_big_list
from k8s_scheduler.kube.watch.streams import MALFORMED, StreamError

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
# Above this an envelope takes too long to scan in one go; pages of 500 stay far below it.
BIG_LIST_BYTES: Final = 8 * 1024 * 1024

_CHANGES = frozenset((ADDED, MODIFIED, DELETED))


class WatchEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """A change of one object."""

    type: str
    object: T


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A point in history that the stream has reached."""

    resource_version: str
    initial_events_end: bool


@dataclass(frozen=True, slots=True)
class Undecodable:
    """An object that cannot be read; fields are empty as far as even that could not be read."""

    type: str
    problem: str
    key: str = ""
    uid: str = ""
    resource_version: str = ""


Decoded: TypeAlias = WatchEvent[T] | Bookmark | Undecodable | ApiError


class _Envelope(Wire, frozen=True, gc=False):
    type: str
    object: msgspec.Raw


class _Identity(Wire, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identified(Wire, frozen=True, gc=False):
    metadata: _Identity


class _BookmarkMeta(Wire, frozen=True, gc=False):
    resource_version: str = ""
    annotations: Labels | None = None


class _BookmarkObject(Wire, frozen=True, gc=False):
    metadata: _BookmarkMeta


class _Code(Wire, frozen=True, gc=False):
    code: int = 500


class _List(Wire, frozen=True, gc=False):
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_identified = msgspec.json.Decoder(_Identified).decode
_decode_bookmark = msgspec.json.Decoder(_BookmarkObject).decode
_decode_code = msgspec.json.Decoder(_Code).decode
_decode_list = msgspec.json.Decoder(_List).decode
_decode_list_meta = msgspec.json.Decoder(ListMeta).decode


@dataclass(slots=True)
class ListPage:
    """The raw items of a list; `metadata` is complete once they have all been taken."""

    metadata: ListMeta
    items: Iterator[bytes | msgspec.Raw]


class ObjectDecoder(Generic[T]):
    """Decodes one resource."""

    def __init__(self, resource: Resource[T]) -> None:
        self._decode_event: Callable[[bytes], WatchEvent[T]]
        self._decode_object: Callable[[bytes | msgspec.Raw], T]
        if isinstance(resource.kind, Kind) and resource.kind.is_custom:
            self._decode_event, self._decode_object = _custom_decoders(resource.kind)
            return
        self._decode_event = msgspec.json.Decoder(_event_of(resource.type)).decode
        self._decode_object = msgspec.json.Decoder(resource.type).decode

    def event(self, line: bytes) -> Decoded[T]:
        try:
            event = self._decode_event(line)
        except msgspec.ValidationError as error:
            return _second_look(line, str(error))
        except UNREADABLE as error:
            raise StreamError(MALFORMED, f"a watch sent what is not JSON: {error}") from error
        metadata = event.object.metadata
        if event.type in _CHANGES and metadata.name:
            if metadata.annotations:
                leave_out_unread(metadata.annotations)
            return event
        if event.type == BOOKMARK:
            return _bookmark(metadata)
        return _second_look(line, "the object has no name")

    def object(self, raw: bytes | msgspec.Raw) -> T | Undecodable:
        try:
            decoded = self._decode_object(raw)
        except UNREADABLE as error:
            return _identify(ADDED, raw, str(error))
        if decoded.metadata.name:
            if decoded.metadata.annotations:
                leave_out_unread(decoded.metadata.annotations)
            return decoded
        return _identify(ADDED, raw, "the object has no name")


def _event_of(wanted: type[T]) -> type[WatchEvent[T]]:
    return cast("type[WatchEvent[T]]", getitem(cast("Any", WatchEvent), wanted))


def _custom_decoders(kind: Kind) -> tuple[Callable[[bytes], Any], Callable[..., Any]]:
    wire, read = custom_reader(kind.paths)
    decode_event = msgspec.json.Decoder(_event_of(wire)).decode
    decode_object = msgspec.json.Decoder(wire).decode

    def event(line: bytes) -> Any:
        found = decode_event(line)
        # What a bookmark says is in an annotation.
        return found if found.type == BOOKMARK else WatchEvent(found.type, read(found.object))

    return event, lambda raw: read(decode_object(raw))


def read_list(body: bytes) -> ListPage:
    """Take a list apart into raw items; a body that is no list is a broken answer."""
    page = ListPage(ListMeta(), iter(()))
    if len(body) > BIG_LIST_BYTES:
        page.items = _big_items(page, body)
        return page
    try:
        decoded = _decode_list(body)
    except UNREADABLE as error:
        raise StreamError(MALFORMED, f"the answer is not a list: {error}") from error
    page.metadata = decoded.metadata
    page.items = iter(decoded.items or ())
    return page


def _big_items(page: ListPage, body: bytes) -> Iterator[bytes]:
    try:
        for member, value in split_big_list(body):
            if member == "metadata":
                page.metadata = _decode_list_meta(value)
            elif member == "items":
                yield value
    except (*UNREADABLE, ValueError) as error:
        raise StreamError(MALFORMED, f"the answer is not a list: {error}") from error


def _second_look(line: bytes, problem: str) -> Bookmark | Undecodable | ApiError:
    try:
        envelope = _decode_envelope(line)
        if envelope.type == ERROR:
            return api_error(_decode_code(envelope.object).code, bytes(envelope.object))
        if envelope.type == BOOKMARK:
            return _bookmark(_decode_bookmark(envelope.object).metadata)
    except UNREADABLE as error:
        raise StreamError(MALFORMED, f"a watch sent what is no event: {error}") from error
    if envelope.type not in _CHANGES:
        raise StreamError(MALFORMED, f"a watch sent an event of unknown type {envelope.type!r}")
    return _identify(envelope.type, envelope.object, problem)


def _bookmark(metadata: ObjectMeta | _BookmarkMeta) -> Bookmark:
    annotations = metadata.annotations or {}
    return Bookmark(metadata.resource_version, annotations.get(INITIAL_EVENTS_END) == "true")


def _identify(event_type: str, raw: bytes | msgspec.Raw, problem: str) -> Undecodable:
    try:
        identity = _decode_identified(raw).metadata
    except UNREADABLE:
        return Undecodable(event_type, problem)
    metadata = ObjectMeta(name=identity.name, namespace=identity.namespace)
    return Undecodable(
        event_type,
        problem,
        key=key_of(metadata) if identity.name else "",
        uid=identity.uid,
        resource_version=identity.resource_version,
    )
