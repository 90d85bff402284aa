"""What configuration knows of a plugin's arguments: their type, their defaults, their rules.

One `PluginArguments` per plugin that takes any. Reading goes the way kube-scheduler goes: types
first, then defaults, then rules. What the plugin's factory gets is a plain mapping with the names
of the file and every default filled in.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from k8s_scheduler.api.config.decode import decode
from k8s_scheduler.api.config.encode import encode
from k8s_scheduler.api.config.field_errors import FieldError, FieldPath, not_covered

Args = TypeVar("Args", bound=msgspec.Struct)


def _unchanged(args: Args) -> Args:
    return args


def _no_rules(_args: msgspec.Struct, _path: FieldPath) -> list[FieldError]:
    return []


@dataclass(frozen=True, slots=True)
class PluginArguments(Generic[Args]):
    """The arguments of one plugin.

    `completed` fills in what a plain default can't say; `broken_rules` looks at the result.
    """

    kind: type[Args]
    completed: Callable[[Args], Args] = field(default=_unchanged)
    broken_rules: Callable[[Args, FieldPath], list[FieldError]] = field(default=_no_rules)

    def read(
        self, given: dict[str, Any], path: FieldPath
    ) -> tuple[dict[str, Any], list[FieldError]]:
        """Return the arguments with defaults, of use only without errors, and every error."""
        decoded, wrong = decode(self.kind, given, path)
        args = self.completed(decoded)
        return encode(args), wrong + not_covered(self.broken_rules(args, path), wrong)

    def defaults(self) -> dict[str, Any]:
        """Return the arguments of a plugin that is given none."""
        return encode(self.completed(self.kind()))
