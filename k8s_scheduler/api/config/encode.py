"""Configuration types back into plain values, as a file would hold them.

The opposite of `decode`: names in camel case, durations as text, bytes in base64. What is
None is left out; everything else is there, empty lists too, so that nothing has to be guessed.
"""

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect

from k8s_scheduler.api.config.decode import describe_type
from k8s_scheduler.api.config.rules import DURATION, FORMAT
from k8s_scheduler.api.durations import format_duration


def encode(value: msgspec.Struct) -> dict[str, Any]:
    kind = describe_type(type(value))
    assert isinstance(kind, inspect.StructType)  # noqa: S101  for the type checker
    return _struct(kind, value)


def encode_field(kind: inspect.Type, value: Any) -> Any:
    if value is None:
        return None
    rule = _RULES.get(type(kind))
    return value if rule is None else rule(kind, value)


def _struct(kind: inspect.StructType, value: Any) -> dict[str, Any]:
    fields = {f.encode_name: encode_field(f.type, getattr(value, f.name)) for f in kind.fields}
    return {name: field for name, field in fields.items() if field is not None}


def _annotated(kind: inspect.Metadata, value: Any) -> Any:
    if (kind.extra or {}).get(FORMAT) == DURATION:
        return format_duration(value)
    return encode_field(kind.type, value)


def _optional(kind: inspect.UnionType, value: Any) -> Any:
    # The only unions are "something or null".
    (something,) = (t for t in kind.types if not isinstance(t, inspect.NoneType))
    return encode_field(something, value)


def _list(kind: inspect.VarTupleType, value: tuple[Any, ...]) -> list[Any]:
    return [encode_field(kind.item_type, item) for item in value]


def _bytes(_kind: inspect.BytesType, value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


# Everything else is in the file what it is in here.
_RULES: Final[Mapping[type[inspect.Type], Callable[[Any, Any], Any]]] = {
    inspect.StructType: _struct,
    inspect.Metadata: _annotated,
    inspect.UnionType: _optional,
    inspect.VarTupleType: _list,
    inspect.BytesType: _bytes,
}
