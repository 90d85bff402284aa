"""A configuration as it is offered: a text from somewhere, or why there is none; and refusals."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from k8s_scheduler.api.config.documents import UnreadableTextError, read_text
from k8s_scheduler.api.config_maps import ConfigMap, ConfigMapName
from k8s_scheduler.api.meta import ObjectReference

# The key of a ConfigMap with several, if none is named.
USUAL_KEY: Final = "config.yaml"


@dataclass(frozen=True, slots=True)
class Offer:
    """What there is to be read at one moment: a text, or the problem with it."""

    source: str
    text: str = ""
    problem: str = ""
    # The object an operator has to change, where it is known.
    regarding: ObjectReference | None = None

    @property
    def hash(self) -> str:
        """Names the content; equal for equal texts."""
        return hash_of(self.problem or self.text)


@dataclass(frozen=True, slots=True)
class RefusedOffer:
    """A configuration that could not be used, and everything that is wrong with it."""

    hash: str
    source: str
    at: float
    errors: tuple[str, ...]


def read_file(path: Path) -> Offer:
    source = str(path)
    try:
        return Offer(source, read_text(path))
    except UnreadableTextError as error:
        return Offer(source, problem=f"{source}: {error}")


def offer_of(wanted: ConfigMapName, found: ConfigMap | None) -> Offer:
    """Return what a ConfigMap holds under the wanted key, or else its only or the usual one."""
    place = f"{wanted.namespace}/{wanted.name}"
    regarding = ObjectReference(kind="ConfigMap", name=wanted.name, namespace=wanted.namespace)
    if found is None:
        # Events can be about what is missing, too.
        return Offer(place, problem=f"ConfigMap {place} does not exist", regarding=regarding)
    metadata = found.metadata
    regarding = msgspec.structs.replace(
        regarding, uid=metadata.uid, resource_version=metadata.resource_version
    )
    data = found.data or {}
    key = wanted.key or (next(iter(data)) if len(data) == 1 else USUAL_KEY)
    if key in data:
        return Offer(f"{place}:{key}", data[key], regarding=regarding)
    there = f"it has {', '.join(sorted(data))}" if data else "it is empty"
    problem = f'ConfigMap {place} has no key "{key}"; {there}'
    if not wanted.key and len(data) > 1:
        problem += f"; name one: {place}:KEY"
    return Offer(place, problem=problem, regarding=regarding)


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
