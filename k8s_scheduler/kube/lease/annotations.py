"""Annotations on a Lease that one holder leaves for the next.

Electors write metadata back as they read it (`lease`), so an annotation survives its writer,
renewals, releases and holders that do not know it.
"""

from typing import Any

import msgspec

from k8s_scheduler.kube.lease.lease import Lease


def annotation_of(lease: Lease, name: str) -> str:
    annotations = _metadata(lease).get("annotations") or {}
    found = annotations.get(name, "")
    return found if isinstance(found, str) else ""


def with_annotation(lease: Lease, name: str, text: str) -> Lease:
    """Return the lease with the annotation set, or removed if the text is empty; sends nothing."""
    metadata = _metadata(lease)
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != name}
    if text:
        annotations[name] = text
    metadata["annotations"] = annotations
    return Lease(lease.resource_version, lease.spec, msgspec.Raw(msgspec.json.encode(metadata)))


def _metadata(lease: Lease) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(lease.metadata)
    return found
