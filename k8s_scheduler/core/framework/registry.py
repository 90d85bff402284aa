"""One registration per plugin: its class, and what profiles have to know of it.

The class has the rest: its name, what it depends on, its reasons, the type of its arguments with
their defaults and rules, and its documentation. Why it is cut so is told in ADR 0031.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, auto
from typing import Any

from k8s_scheduler.api.config.arguments import PluginArgs, read_args
from k8s_scheduler.api.config.types import PluginFacts
from k8s_scheduler.api.kinds import KindError
from k8s_scheduler.core.framework.plugin import POINTS, Plugin


class ProfileError(Exception):
    """A profile that can't be run; the message is kube-scheduler's where it has one."""


class ProfilePlace(Enum):
    """Who puts a plugin into a profile."""

    # The default profile has it, at its place in the table.
    DEFAULT = auto()
    # It runs where a profile names it.
    NAMED = auto()
    # The scheduler puts it into every profile or none; no profile can name it.
    SCHEDULER = auto()


@dataclass(frozen=True, slots=True)
class Registration:
    """A plugin, and its place in profiles."""

    kind: type[Plugin]
    _: KW_ONLY
    place: ProfilePlace = ProfilePlace.DEFAULT
    # In the default profile; None is 1, for plugins that score.
    weight: int | None = None
    # At which point it must run as well, to be able to run at a point.
    needs: Mapping[str, str] = field(default_factory=dict)
    # The points that files may name it at, where they are not those whose methods it has.
    upstream_points: str = ""
    # Makes it in place of the class.
    factory: Callable[..., Plugin] | None = None

    @property
    def points(self) -> frozenset[str]:
        """Return the extension points whose methods the plugin has."""
        return frozenset(point for point, kind in POINTS.items() if issubclass(self.kind, kind))

    @property
    def arguments(self) -> type[PluginArgs] | None:
        """Return the type of its arguments, if it takes any."""
        found: type[PluginArgs] | None = getattr(self.kind, "arguments", None)
        return found

    @property
    def facts(self) -> PluginFacts:
        return PluginFacts(
            points=frozenset(self.upstream_points.split()) or self.points,
            default_weight=self.weight,
            needs=self.needs,
            arguments=self.arguments,
            by_default=self.place is ProfilePlace.DEFAULT,
        )

    def make(self, given: Mapping[str, Any]) -> Plugin:
        """Make the plugin with arguments as a file gives them; raises ProfileError."""
        make: Callable[..., Plugin] = self.factory or self.kind
        if self.arguments is None:
            return make()
        args, errors = read_args(self.arguments, dict(given), (self.kind.name,))
        if errors:
            raise ProfileError("; ".join(map(str, errors)))
        try:
            return make(args)
        except KindError as error:
            raise ProfileError(f"{self.kind.name}: {error}") from error


def facts_of(plugins: Mapping[str, Registration]) -> dict[str, PluginFacts]:
    """Return what configuration has to know of those plugins that profiles can name."""
    return {n: r.facts for n, r in plugins.items() if r.place is not ProfilePlace.SCHEDULER}
