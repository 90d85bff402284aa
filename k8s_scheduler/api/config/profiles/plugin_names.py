"""The plugin names a profile mentions: do they exist, do they belong there, do they work yet.

The sentences are kube-scheduler's where it has one (`… does not exist`, `… does not extend …`,
`… already registered as …`), with the nearest right name behind.
"""

from collections.abc import Mapping

from k8s_scheduler.api.config.field_errors import FieldError, FieldPath, did_you_mean, required
from k8s_scheduler.api.config.profiles.points import MULTI_POINT, REMOVED_PLUGINS, WEIGHTED_POINTS
from k8s_scheduler.api.config.types import PluginEntry, PluginFacts, PluginSet


def check_plugin_names(
    sets: Mapping[str, PluginSet], path: FieldPath, known: Mapping[str, PluginFacts]
) -> tuple[list[FieldError], list[FieldError]]:
    errors: list[FieldError] = []
    warnings: list[FieldError] = []
    for point, plugins in sets.items():
        seen: set[str] = set()
        for i, plugin in enumerate(plugins.enabled):
            at = (*path, point, "enabled", i)
            error = _enabled(plugin.name, point, (*at, "name"), known)
            if error is None and point != MULTI_POINT and plugin.name in seen:
                error = already_registered((*at, "name"), plugin.name, point)
            seen.add(plugin.name)
            if error is not None:
                errors.append(error)
            elif not _weighs(plugin, point, known):
                warnings.append(_weight_without_effect((*at, "weight")))
        for i, plugin in enumerate(plugins.disabled):
            at = (*path, point, "disabled", i)
            if plugin.name in REMOVED_PLUGINS:
                message = f'plugin "{plugin.name}" was removed; disabling it has no effect'
                warnings.append(FieldError((*at, "name"), message))
            elif plugin.name != "*":
                errors += unknown_plugin(plugin.name, (*at, "name"), known)
            if plugin.weight is not None:
                warnings.append(_weight_without_effect((*at, "weight")))
    return errors, warnings


def unknown_plugin(
    name: str, path: FieldPath, known: Mapping[str, PluginFacts], *, point: str = MULTI_POINT
) -> list[FieldError]:
    if not name:
        return [required(path)]
    if name in REMOVED_PLUGINS:
        message = f'plugin "{name}" was removed from kube-scheduler; NodeVolumeLimits does its work'
        return [FieldError(path, message)]
    if name not in known:
        kind = "plugin" if point == MULTI_POINT else plugin_type(point)
        return [FieldError(path, f'{kind} "{name}" does not exist{did_you_mean(name, known)}')]
    return []


def unsupported_plugin(name: str, path: FieldPath) -> FieldError:
    """Return the error for a plugin that kube-scheduler has and this version has not."""
    return FieldError(path, f'plugin "{name}" is not supported yet')


def already_registered(path: FieldPath, name: str, point: str) -> FieldError:
    return FieldError(path, f'plugin "{name}" already registered as "{plugin_type(point)}"')


def plugin_type(point: str) -> str:
    """Return what kube-scheduler calls the plugins of a point: `preFilter` → `PreFilterPlugin`."""
    return f"{point[0].upper()}{point[1:]}Plugin"


def _enabled(
    name: str, point: str, path: FieldPath, known: Mapping[str, PluginFacts]
) -> FieldError | None:
    for error in unknown_plugin(name, path, known, point=point):
        return error
    if point != MULTI_POINT and point not in known[name].points:
        points = ", ".join(sorted(known[name].points))
        message = f'plugin "{name}" does not extend {plugin_type(point)} plugin'
        return FieldError(path, f"{message}; it implements {points}")
    return None if known[name].supported else unsupported_plugin(name, path)


def _weighs(plugin: PluginEntry, point: str, known: Mapping[str, PluginFacts]) -> bool:
    if plugin.weight is None or point in WEIGHTED_POINTS:
        return True
    return point == MULTI_POINT and bool(WEIGHTED_POINTS & known[plugin.name].points)


def _weight_without_effect(path: FieldPath) -> FieldError:
    return FieldError(path, "a weight counts only where nodes are scored; it has no effect here")
