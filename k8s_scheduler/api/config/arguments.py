"""What a plugin takes as arguments: the base of their types, and how they are read.

The type stands beside its plugin, with its defaults and its rules; the plugin's registration names
it. Reading goes the way kube-scheduler goes: types first, then defaults, then rules.
"""

from typing import Any, Self, TypeVar

from k8s_scheduler.api.config.decode import decode
from k8s_scheduler.api.config.encode import encode
from k8s_scheduler.api.config.field_errors import FieldError, FieldPath, not_covered
from k8s_scheduler.api.config.rules import Configured


class PluginArgs(Configured, frozen=True):
    """The arguments of one plugin, as a file gives them and as the plugin gets them."""

    def completed(self) -> Self:
        """Return the same with what a plain default can't say filled in."""
        return self

    def broken_rules(self, _path: FieldPath) -> list[FieldError]:
        """Return what is wrong with completed arguments, beyond single fields."""
        return []


Args = TypeVar("Args", bound=PluginArgs)


def read_args(
    kind: type[Args], given: dict[str, Any], path: FieldPath
) -> tuple[Args, list[FieldError]]:
    """Return the arguments with defaults, of use only without errors, and every error."""
    decoded, wrong = decode(kind, given, path)
    args = decoded.completed()
    return args, wrong + not_covered(args.broken_rules(path), wrong)


def default_args(kind: type[PluginArgs]) -> dict[str, Any]:
    return encode(kind().completed())
