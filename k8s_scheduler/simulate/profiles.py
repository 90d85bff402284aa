"""The profile in force in a scenario: the first of its configuration, or the default one."""

import functools
import json
from typing import Any

from k8s_scheduler.api.config.field_errors import ConfigurationError, render_path
from k8s_scheduler.api.config.load import configuration_from_value, default_configuration
from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.core.setup import known_plugins


class ProfileProblemError(Exception):
    """A configuration that cannot be used; the text names every error by its path."""


def profile_in_force(config: dict[str, Any] | None) -> ResolvedProfile:
    """Return the first profile of a configuration; raises ProfileProblemError."""
    if config is None:
        return _default_profile()
    return _configured_profile(json.dumps(config, sort_keys=True))


@functools.cache
def _default_profile() -> ResolvedProfile:
    return default_configuration(known_plugins()).profiles[0]


# Scenarios of one file tend to share a few configurations.
@functools.lru_cache(maxsize=256)
def _configured_profile(text: str) -> ResolvedProfile:
    try:
        found = configuration_from_value(json.loads(text), known_plugins(), source="config")
    except ConfigurationError as error:
        # Where in the one line of the scenario something stands is no help; its path is.
        listed = "; ".join(
            ": ".join(part for part in (render_path(e.path), e.message) if part)
            for e in error.errors
        )
        raise ProfileProblemError(f"config: {listed}") from error
    return found.profiles[0]
