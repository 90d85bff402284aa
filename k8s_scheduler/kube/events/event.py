"""Events of events.k8s.io/v1: what is said about an object, and how it looks on the wire.

The server's rules that shape this file: the note is at most 1024 bytes, names at most 253
characters, `reportingInstance` at most 128; the namespace is the object's, or `default` for
objects that have none; `eventTime` and `series.lastObservedTime` are MicroTimes.
"""

from typing import TypeAlias

import msgspec

from k8s_scheduler.api.meta import ObjectReference
from k8s_scheduler.kube.timestamps import micro_time

NORMAL = "Normal"
WARNING = "Warning"

# Where events about objects live that have none.
NAMESPACE = "default"

_NOTE_BYTES = 1024
_ELLIPSIS = " ..."
_NAME_CHARACTERS = 253
_INSTANCE_CHARACTERS = 128

# What makes two events the same. Not the note: a series keeps its first one. Not the object's
# resourceVersion: the condition written after a failed attempt would end every series.
ObjectKey: TypeAlias = tuple[str, str, str, str, str]
SeriesKey: TypeAlias = tuple[str, str, str, str, str, ObjectKey, ObjectKey | None]


class EventNote(msgspec.Struct, frozen=True, kw_only=True):
    """Something worth telling about an object, by one of our profiles."""

    regarding: ObjectReference
    type: str
    reason: str
    action: str
    note: str
    reporting_controller: str
    related: ObjectReference | None = None


class _Reference(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A reference as it is written: what is empty is left away, and nothing else.

    The wire types leave away their defaults, and `apiVersion: v1` is one of them.
    """

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class Observed(msgspec.Struct, frozen=True):
    """How often an event was seen until when."""

    count: int
    last_wall_ns: int


def series_key(note: EventNote) -> SeriesKey:
    """Return what identical events share.

    The note is part of it: an event that says something new is a new event. (kube-scheduler gets
    there by the pod's resourceVersion, which its conditions change along with the text.)
    """
    return (
        note.type,
        note.action,
        note.reason,
        note.reporting_controller,
        note.note,
        _identity(note.regarding),
        None if note.related is None else _identity(note.related),
    )


def object_key(key: SeriesKey) -> ObjectKey:
    return key[5]


def _identity(reference: ObjectReference) -> ObjectKey:
    return (
        reference.api_version,
        reference.kind,
        reference.namespace,
        reference.name,
        reference.uid,
    )


def event_name(object_name: str, wall_ns: int) -> str:
    """Return `<object>.<hex of the time>`, with a long object name cut to what the server takes."""
    suffix = f".{wall_ns:x}"
    return object_name[: _NAME_CHARACTERS - len(suffix)].rstrip(".-") + suffix


def event_namespace(note: EventNote) -> str:
    return note.regarding.namespace or NAMESPACE


def events_path(namespace: str, name: str = "") -> str:
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    return f"{path}/{name}" if name else path


def shorten_note(note: str) -> str:
    """Return the note in at most 1024 bytes, without cutting a character in two."""
    if note.isascii() and len(note) <= _NOTE_BYTES:
        return note
    encoded = note.encode(errors="replace")
    if len(encoded) > _NOTE_BYTES:
        room = _NOTE_BYTES - len(_ELLIPSIS)
        return encoded[:room].decode(errors="ignore") + _ELLIPSIS
    return encoded.decode()


def shortened(note: EventNote) -> EventNote:
    """Return an event whose note is as long as the server takes it: more is not worth keeping."""
    short = shorten_note(note.note)
    return note if short == note.note else msgspec.structs.replace(note, note=short)


def encode_event(
    note: EventNote, name: str, *, hostname: str, first_wall_ns: int, observed: Observed
) -> bytes:
    """Return the body of a POST; repeats that happened before it ride along as a series."""
    event: dict[str, object] = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": note.regarding.namespace or NAMESPACE},
        "eventTime": micro_time(first_wall_ns),
        "reportingController": note.reporting_controller,
        "reportingInstance": f"{note.reporting_controller}-{hostname}"[:_INSTANCE_CHARACTERS],
        "action": note.action,
        "reason": note.reason,
        "type": note.type,
        "note": shorten_note(note.note),
        "regarding": _reference(note.regarding),
    }
    if note.related is not None:
        event["related"] = _reference(note.related)
    if observed.count > 1:
        event["series"] = _series(observed)
    return msgspec.json.encode(event)


def encode_series(observed: Observed) -> bytes:
    """Return the merge patch that brings a series up to date."""
    return msgspec.json.encode({"series": _series(observed)})


def _series(observed: Observed) -> dict[str, object]:
    return {"count": observed.count, "lastObservedTime": micro_time(observed.last_wall_ns)}


def _reference(reference: ObjectReference) -> _Reference:
    return _Reference(
        reference.api_version,
        reference.kind,
        reference.namespace,
        reference.name,
        reference.uid,
        reference.resource_version,
    )
