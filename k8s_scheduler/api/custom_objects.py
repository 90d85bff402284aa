r"""Objects of custom resources: their metadata, and of the rest only what is declared.

A path names a field as JSON does, level by level: `spec.minMember`. What is below the field, an
object or a list, is kept whole; a path does not lead into lists. A dot within a name is written
`\.`, as in `metadata.annotations.example\.com/rank`. Everything else of the object is skipped by
the decoder: a status that changes all the time is never seen, unless a path leads there.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

import msgspec

from k8s_scheduler.api.meta import ClusterObject, ObjectMeta, Wire

_DOT: Final = re.compile(r"(?<!\\)\.")
_METADATA: Final = "metadata"
_ANNOTATIONS: Final = (_METADATA, "annotations")
# What is there in place of an object ends the path and is no reason to refuse the object.
_NO_OBJECT: Final = str | int | float | bool | list[Any] | None

_Tree: TypeAlias = dict[str, "_Tree"]


class CustomObject(ClusterObject, frozen=True, gc=False):
    """An object of a custom resource.

    `content` has what was found, by declared path; a path that leads nowhere is not in it.
    Annotations are in `content` alone, and only the declared ones.
    """

    content: dict[str, Any] = msgspec.field(default_factory=dict)


class _CustomWire(Wire, frozen=True, gc=False):
    """Base of what is decoded: `metadata`, and a field for each name that a path begins with."""

    metadata: ObjectMeta


def names_of(path: str) -> tuple[str, ...]:
    """Return the names that a path leads through; ValueError if it can't be declared."""
    names = tuple(name.replace("\\.", ".") for name in _DOT.split(path))
    if not all(names):
        raise ValueError(f"the path {path!r} has an empty name")
    if names[0] == _METADATA and (names[:2] != _ANNOTATIONS or len(names) != len(_ANNOTATIONS) + 1):
        raise ValueError(f"the path {path!r} is not to one annotation; other metadata is there")
    return names


def custom_reader(
    paths: Iterable[str],
) -> tuple[type[_CustomWire], Callable[[_CustomWire], CustomObject]]:
    """Return what bytes are decoded to, and how that becomes an object with these paths."""
    by_path = {path: names_of(path) for path in sorted(paths)}
    tree: _Tree = {}
    ends: set[tuple[str, ...]] = set(by_path.values())
    for names in by_path.values():
        below = tree
        # What is within a declared field is part of it.
        for depth, name in enumerate(names, 1):
            below = below.setdefault(name, {})
            if names[:depth] in ends:
                below.clear()
                break
    tree.pop(_METADATA, None)

    def read(wire: _CustomWire) -> CustomObject:
        found = ((path, _at(wire, names)) for path, names in by_path.items())
        return CustomObject(
            metadata=msgspec.structs.replace(wire.metadata, annotations=None),
            content={path: value for path, value in found if value is not msgspec.UNSET},
        )

    return cast("type[_CustomWire]", _struct(tree, _CustomWire)), read


def _struct(tree: _Tree, base: type[Wire]) -> type[Wire]:
    """Return a type with the fields of a tree, under names of ours: JSON's may be anything."""
    fields = [
        (f"field_{i}", (_struct(below, Wire) | _NO_OBJECT) if below else Any, msgspec.UNSET)
        for i, below in enumerate(tree.values())
    ]
    made = msgspec.defstruct(
        "CustomWire",
        fields,
        bases=(base,),
        namespace={"names": dict(zip(tree, (field[0] for field in fields), strict=True))},
        rename=dict(zip((field[0] for field in fields), tree, strict=True)),
        frozen=True,
        gc=False,
    )
    return cast("type[Wire]", made)


def _at(value: Any, names: tuple[str, ...]) -> Any:
    if names[:2] == _ANNOTATIONS:
        return (value.metadata.annotations or {}).get(names[2], msgspec.UNSET)
    for name in names:
        if isinstance(value, Wire):
            value = getattr(value, cast("Any", value).names.get(name), msgspec.UNSET)
        elif isinstance(value, Mapping):
            value = value.get(name, msgspec.UNSET)
        else:
            return msgspec.UNSET
    return value
