"""Plain values into configuration types, collecting every error instead of the first.

msgspec describes the types and stops at the first error, so this module walks the description
itself. A part that is wrong is reported and replaced by its default, so that the checks after it
run on whole objects and never speak of the same part twice. `null` means "not given", as in Go.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from k8s_scheduler.api.config.field_errors import (
    FieldError,
    FieldPath,
    did_you_mean,
    invalid,
    render_value,
    unsupported,
)
from k8s_scheduler.api.config.rules import DURATION, FORMAT, Choice, Range, rule
from k8s_scheduler.api.durations import format_duration, parse_duration
from k8s_scheduler.lib.base64_text import decode_base64

T = TypeVar("T", bound=msgspec.Struct)


class _Wrong:
    """Marks a value that was reported; the field's default takes its place."""


_WRONG: Final = _Wrong()
describe_type = cache(inspect.type_info)


def decode(kind: type[T], value: Any, path: FieldPath) -> tuple[T, list[FieldError]]:
    """Return `value` as a `kind`, and everything in it that does not fit."""
    walk = _Walk()
    decoded = walk.decode(describe_type(kind), value, path)
    return (decoded if isinstance(decoded, kind) else kind()), walk.errors


class _Walk:
    """One decoding: a rule per kind of type, and the errors met on the way."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self._rules: dict[type[inspect.Type], Callable[[Any, Any, FieldPath], Any]] = {
            inspect.Metadata: self._annotated,
            inspect.UnionType: self._optional,
            inspect.StructType: self._struct,
            inspect.VarTupleType: self._list,
            inspect.DictType: self._mapping,
            inspect.BoolType: self._bool,
            inspect.StrType: self._string,
            inspect.IntType: self._integer,
            inspect.FloatType: self._number,
            inspect.BytesType: self._bytes,
        }

    def decode(self, kind: inspect.Type, value: Any, path: FieldPath) -> Any:
        return self._rules[type(kind)](kind, value, path)

    def _annotated(self, kind: inspect.Metadata, value: Any, path: FieldPath) -> Any:
        is_duration = (kind.extra or {}).get(FORMAT) == DURATION
        decoded = (
            self._duration(value, path) if is_duration else self.decode(kind.type, value, path)
        )
        if decoded is _WRONG:
            return _WRONG
        match rule(kind.extra):
            case Range() as bounds if not bounds.allows(decoded):
                shown = format_duration(decoded) if is_duration else decoded
                self.errors.append(invalid(path, shown, bounds.detail))
                return _WRONG
            case Choice(values) if decoded and decoded not in values:
                self.errors.append(unsupported(path, decoded, values))
                return _WRONG
        return decoded

    def _optional(self, kind: inspect.UnionType, value: Any, path: FieldPath) -> Any:
        # The only unions are "something or null", and null never gets here.
        (something,) = (t for t in kind.types if not isinstance(t, inspect.NoneType))
        return self.decode(something, value, path)

    def _struct(self, kind: inspect.StructType, value: Any, path: FieldPath) -> Any:
        if not isinstance(value, dict):
            return self._wrong(path, "a mapping", value)
        fields = {field.encode_name: field for field in kind.fields}
        for name in value:
            if name not in fields:
                hint = did_you_mean(name, fields.keys() - value.keys())
                self.errors.append(FieldError((*path, name), f'unknown field "{name}"{hint}'))
        given = {}
        for name, field in fields.items():
            if value.get(name) is None:
                continue
            decoded = self.decode(field.type, value[name], (*path, name))
            if decoded is not _WRONG:
                given[field.name] = decoded
        return kind.cls(**given)

    def _list(self, kind: inspect.VarTupleType, value: Any, path: FieldPath) -> Any:
        if not isinstance(value, list):
            return self._wrong(path, "a list", value)
        items = []
        for i, element in enumerate(value):
            item = _WRONG if element is None else self.decode(kind.item_type, element, (*path, i))
            # A wrong or empty element keeps its place, so that later paths count right.
            items.append(_zero(kind.item_type) if item is _WRONG else item)
        return tuple(items)

    def _mapping(self, _kind: inspect.DictType, value: Any, path: FieldPath) -> Any:
        return value if isinstance(value, dict) else self._wrong(path, "a mapping", value)

    def _bool(self, _kind: inspect.BoolType, value: Any, path: FieldPath) -> Any:
        return value if isinstance(value, bool) else self._wrong(path, "true or false", value)

    def _string(self, _kind: inspect.StrType, value: Any, path: FieldPath) -> Any:
        return value if isinstance(value, str) else self._wrong(path, "a string", value)

    def _number(self, _kind: inspect.FloatType, value: Any, path: FieldPath) -> Any:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and math.isfinite(value):
            return float(value)
        return self._wrong(path, "a finite number", value)

    def _integer(self, kind: inspect.IntType, value: Any, path: FieldPath) -> Any:
        is_whole = isinstance(value, float) and value.is_integer()
        number = int(value) if is_whole else value
        if isinstance(number, bool) or not isinstance(number, int):
            return self._wrong(path, "an integer", value)
        if (kind.ge is not None and number < kind.ge) or (kind.le is not None and number > kind.le):
            # As it was given: 1e300 has a short form.
            return self._wrong(path, f"an integer from {kind.ge} to {kind.le}", value)
        return number

    def _bytes(self, _kind: inspect.BytesType, value: Any, path: FieldPath) -> Any:
        try:
            return decode_base64(value) if isinstance(value, str) else self._no_bytes(path)
        except ValueError:
            return self._no_bytes(path)

    def _no_bytes(self, path: FieldPath) -> Any:
        # Not quoted: it may be a key.
        self.errors.append(FieldError(path, "must be text in base64"))
        return _WRONG

    def _duration(self, value: Any, path: FieldPath) -> Any:
        if not isinstance(value, str):
            return self._wrong(path, 'a duration like "15s"', value)
        try:
            return parse_duration(value)
        except ValueError as error:
            self.errors.append(FieldError(path, str(error)))
            return _WRONG

    def _wrong(self, path: FieldPath, expected: str, value: Any) -> Any:
        self.errors.append(FieldError(path, f"must be {expected}, not {_describe(value)}"))
        return _WRONG


def _zero(kind: inspect.Type) -> Any:
    """Return the empty form of a list's element; lists hold structs or strings."""
    return kind.cls() if isinstance(kind, inspect.StructType) else ""


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f"the string {render_value(value)}"
    return render_value(value) if isinstance(value, bool) else f"the number {value}"
