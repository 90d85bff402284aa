"""What a holder adds to the metadata of its Lease: labels and annotations.

Everything else in the metadata is written back as it was read, since others own it. So an
annotation that a holder leaves for the next survives its writer, renewals, releases and holders
that do not know it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec


@dataclass(frozen=True, slots=True)
class LeaseNotes:
    """Labels by which a Lease is found, and annotations that say what it is about."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


NO_NOTES: Final = LeaseNotes()


def with_notes(metadata: msgspec.Raw, notes: LeaseNotes) -> msgspec.Raw:
    """Return metadata with these labels and annotations; the same object if it has them all."""
    found: dict[str, Any] = msgspec.json.decode(metadata)
    changed = False
    for kind, wanted in (("labels", notes.labels), ("annotations", notes.annotations)):
        there = found.get(kind) or {}
        if not wanted.items() <= there.items():
            found[kind] = {**there, **wanted}
            changed = True
    return msgspec.Raw(msgspec.json.encode(found)) if changed else metadata
