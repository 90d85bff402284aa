"""Where objects live on the fake API server, and the small algebra it needs of them."""

import copy
import functools
from dataclasses import dataclass, field

import msgspec

from k8s_scheduler.kube.http.protocol import Response
from tests.fakes.transport import Json, status


@dataclass(frozen=True, slots=True)
class Location:
    """A path taken apart; without a name it is a list, in one namespace or in all."""

    prefix: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    # Worked out once: they are asked for at every step.
    list_path: str = field(init=False)
    key: str = field(init=False)

    def __post_init__(self) -> None:
        key = f"{self.namespace}/{self.name}" if self.namespace else self.name
        object.__setattr__(self, "list_path", f"{self.prefix}/{self.plural}")
        object.__setattr__(self, "key", key)

    @property
    def path(self) -> str:
        inside = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{self.prefix}{inside}/{self.plural}/{self.name}"

    def at(self, namespace: str, name: str) -> "Location":
        return Location(self.prefix, self.plural, namespace, name, self.subresource)


@functools.lru_cache(maxsize=4096)
def locate(path: str) -> Location:
    """Take a path apart."""
    parts = path.strip("/").split("/")
    head = 2 if parts[0] == "api" else 3
    prefix, rest = "/" + "/".join(parts[:head]), parts[head:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "")[:3]
    return Location(prefix, plural, namespace, name, subresource)


def matches(content: Json, field_selector: str) -> bool:
    """Return whether an object satisfies `a.b=c,d!=e`."""
    for path, wanted, equal in _clauses(field_selector):
        value: object = content
        for part in path:
            value = value.get(part, "") if isinstance(value, dict) else ""
        if (value == wanted) != equal:
            return False
    return True


def has_label(content: Json, label_selector: str) -> bool:
    """Return whether an object has a label, whatever it says; every object has none at all."""
    labels = content.get("metadata", {}).get("labels") or {}
    return not label_selector or label_selector in labels


@functools.lru_cache(maxsize=256)
def _clauses(field_selector: str) -> tuple[tuple[tuple[str, ...], str, bool], ...]:
    """Return path, value, and whether it has to be that value, of each clause."""
    found = []
    for clause in filter(None, field_selector.split(",")):
        path, _, wanted = clause.replace("!=", "=").partition("=")
        found.append((tuple(path.split(".")), wanted, "!=" not in clause))
    return tuple(found)


def copied(content: Json) -> Json:
    """Return an object again, with nothing shared."""
    again: Json = msgspec.json.decode(msgspec.json.encode(content))
    return again


def merge(content: Json, patch: Json) -> Json:
    """Apply a merge patch; lists of conditions are merged by type, as strategic patches do."""
    merged = copy.deepcopy(content)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            current = merged.get(name)
            merged[name] = merge(current if isinstance(current, dict) else {}, value)
        elif name == "conditions":
            by_type = {entry["type"]: entry for entry in merged.get(name) or []}
            by_type.update({entry["type"]: entry for entry in value})
            merged[name] = list(by_type.values())
        else:
            merged[name] = value
    return merged


def not_found(location: Location) -> Response:
    """Say that there is no such object."""
    return status(404, "NotFound", f'{location.plural} "{location.name}" not found')


def conflict(location: Location, *, reason: str = "Conflict", message: str = "") -> Response:
    """Say that somebody else was first."""
    text = message or "the object has been modified"
    return status(409, reason, f'{location.plural} "{location.name}": {text}')
