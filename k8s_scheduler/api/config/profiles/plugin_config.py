"""The arguments a profile gives to plugins: whose they are, and whether that plugin takes them.

What is inside is checked by the type of the plugin's arguments. `apiVersion` and `kind` may be
there, as kube-scheduler allows, must then be the plugin's, and are not handed on.
"""

from collections.abc import Collection, Mapping
from typing import Any

from k8s_scheduler.api.config.arguments import default_args, read_args
from k8s_scheduler.api.config.encode import encode
from k8s_scheduler.api.config.field_errors import FieldError, FieldPath, duplicate, invalid
from k8s_scheduler.api.config.profiles.plugin_names import unknown_plugin, unsupported_plugin
from k8s_scheduler.api.config.types import API_VERSION, PluginConfig, PluginFacts


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
