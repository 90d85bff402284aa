"""Rules that concern one field, written at the field's type.

The decoder applies them, the JSON schema shows them: there is no second list. A rule sits in the
`extra` of `msgspec.Meta`, under `RULE`. Rules between fields are code, in `validate` and in
each plugin's arguments.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

import msgspec


class Configured(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A part of the file: frozen, in camel case there, with no fields but its own."""


RULE: Final = "rule"
FORMAT: Final = "format"
DURATION: Final = "duration"

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
# A string like "15s" in the file, seconds in here.
Duration: TypeAlias = Annotated[float, msgspec.Meta(extra={FORMAT: DURATION})]


@dataclass(frozen=True, slots=True)
class Range:
    """The bounds of a number, or of a duration in seconds; `detail` is kube-scheduler's text."""

    minimum: int
    maximum: int | None
    detail: str

    def allows(self, value: float) -> bool:
        return self.minimum <= value and (self.maximum is None or value <= self.maximum)


@dataclass(frozen=True, slots=True)
class Choice:
    """The words a field may hold. An empty text counts as none."""

    values: tuple[str, ...]


def rule(extra: dict[str, Any] | None) -> Range | Choice | None:
    found = (extra or {}).get(RULE)
    return found if isinstance(found, (Range, Choice)) else None
