"""What a profile says of plugins: their names, and the arguments it gives them.

Do the names exist, do they belong there, do they work yet; whose are the arguments, and does that
plugin take them. What is inside is checked by the type of the plugin's arguments. `apiVersion` and
`kind` may be there, as kube-scheduler allows, must then be the plugin's, and are not handed on.

The sentences are kube-scheduler's where it has one (`… does not exist`, `… does not extend …`,
`… already registered as …`), with the nearest right name behind.
"""

from collections.abc import Collection, Mapping
from typing import Any

from k8s_scheduler.api.config.arguments import default_args, read_args
from k8s_scheduler.api.config.encode import encode
from k8s_scheduler.api.config.field_errors import (
    FieldError,
    FieldPath,
    did_you_mean,
    duplicate,
    invalid,
    required,
)
from k8s_scheduler.api.config.profiles.points import MULTI_POINT, REMOVED_PLUGINS, WEIGHTED_POINTS
from k8s_scheduler.api.config.types import (
    API_VERSION,
    PluginConfig,
    PluginEntry,
    PluginFacts,
    PluginSet,
)


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


def check_plugin_config(
    configs: tuple[PluginConfig, ...],
    path: FieldPath,
    *,
    known: Mapping[str, PluginFacts],
    used: Collection[str],
) -> tuple[dict[str, dict[str, Any]], list[FieldError], list[FieldError]]:
    """Return the arguments of all plugins that take any, errors and warnings.

    `used`: plugins that run somewhere; only they have an entry.
    """
    result: dict[str, dict[str, Any]] = {
        name: default_args(arguments)
        for name in sorted(used)
        if (arguments := known[name].arguments) is not None and known[name].supported
    }
    errors: list[FieldError] = []
    warnings: list[FieldError] = []
    first: dict[str, FieldPath] = {}
    for i, config in enumerate(configs):
        at = (*path, i)
        name_error = _name(config.name, (*at, "name"), known, first)
        if name_error is not None:
            errors.append(name_error)
            continue
        first[config.name] = (*at, "name")
        args, type_errors = _without_type(config, (*at, "args"))
        errors += type_errors
        arguments = known[config.name].arguments
        if arguments is not None:
            completed, args_errors = read_args(arguments, args, (*at, "args"))
            errors += args_errors
            if config.name in used:
                result[config.name] = encode(completed)
        elif args:
            message = f'plugin "{config.name}" takes no arguments'
            errors.append(FieldError((*at, "args"), f"Forbidden: {message}"))
        if config.name not in used:
            message = f'plugin "{config.name}" is not enabled in this profile; no effect'
            warnings.append(FieldError(at, message))
    return result, errors, warnings


def _name(
    name: str,
    path: FieldPath,
    known: Mapping[str, PluginFacts],
    first: Mapping[str, FieldPath],
) -> FieldError | None:
    for error in unknown_plugin(name, path, known):
        return error
    if name in first:
        return duplicate(path, name, first=first[name])
    # Arguments are decisions too: a plugin that is only left out of the defaults may not get any.
    return None if known[name].supported else unsupported_plugin(name, path)


def _without_type(config: PluginConfig, path: FieldPath) -> tuple[dict[str, Any], list[FieldError]]:
    errors = []
    for field, right in (("apiVersion", API_VERSION), ("kind", f"{config.name}Args")):
        given = config.args.get(field, right)
        if given != right:
            errors.append(invalid((*path, field), given, f'must be "{right}"'))
    args = {key: value for key, value in config.args.items() if key not in ("apiVersion", "kind")}
    return args, errors
