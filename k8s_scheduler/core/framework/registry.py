"""Which plugins there are, and at which extension points each takes part."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.core.framework.plugin import POINTS, Plugin
from k8s_scheduler.core.framework.profile import (
    PluginFactory,
    Profile,
    ProfileError,
    compile_profile,
)


@dataclass(frozen=True, slots=True)
class Registration:
    """How to make a plugin."""

    kind: type[Plugin]
    factory: PluginFactory

    @property
    def points(self) -> frozenset[str]:
        """Return the extension points whose methods the plugin has."""
        return frozenset(point for point, kind in POINTS.items() if issubclass(self.kind, kind))


def without_arguments(kind: Callable[[], Plugin]) -> PluginFactory:
    """Make a factory of a plugin that has nothing to configure."""

    def make(_args: Mapping[str, Any]) -> Plugin:
        return kind()

    return make


def compile_profiles(
    resolved: Sequence[ResolvedProfile], plugins: Mapping[str, Registration]
) -> dict[str, Profile]:
    """Return the profiles by name, ready to run; raises ProfileError if one can't be."""
    factories = {name: registration.factory for name, registration in plugins.items()}
    profiles = {p.scheduler_name: compile_profile(p, factories) for p in resolved}
    if not profiles:
        raise ProfileError("at least one profile is needed")
    return profiles
