"""Notes on a Lease: annotations that one holder leaves for the next.

Electors give metadata back as they got it (`lease`), so a note outlives its writer, renewals,
releases and holders that know nothing of it.
"""

from typing import Any

import msgspec

from k8s_scheduler.kube.lease.lease import Lease


def note_on(lease: Lease, name: str) -> str:
    """Return a note; empty if there is none."""
    annotations = _metadata(lease).get("annotations") or {}
    found = annotations.get(name, "")
    return found if isinstance(found, str) else ""


def with_note(lease: Lease, name: str, text: str) -> Lease:
    """Return the lease with another note, without it if the text is empty; writes nothing."""
    metadata = _metadata(lease)
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != name}
    if text:
        annotations[name] = text
    metadata["annotations"] = annotations
    return Lease(lease.resource_version, lease.spec, msgspec.Raw(msgspec.json.encode(metadata)))


def _metadata(lease: Lease) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(lease.metadata)
    return found
