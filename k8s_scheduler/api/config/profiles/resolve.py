"""From a profile as written to the plugins at each extension point, in their order.

The steps are kube-scheduler's, quirks included:

    default multiPoint ─┐ merge: disabled leaves, an enabled default is replaced in place
    user's multiPoint ──┘        (its weight too), everything else is appended
             │
             ▼ expand, once per point (skipped where the point disables "*")
    1. plugins named at the point that multiPoint also brings, in the point's order
    2. what else multiPoint brings, unless disabled at the point
    3. the other plugins named at the point

A weight named at the point wins over multiPoint's; no weight or 0 is 1, also for a plugin whose
default is higher: naming a plugin without a weight resets it.

Stricter than kube-scheduler on purpose: a name that does not exist is an error in `disabled` and
`pluginConfig` too, where kube-scheduler ignores it, because there a typo goes unnoticed; and so is
half a plugin that can't work without its other half, which kube-scheduler finds out pod by pod.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from k8s_scheduler.api.config.field_errors import FieldError, FieldPath
from k8s_scheduler.api.config.profiles.plugins import (
    already_registered,
    check_plugin_config,
    check_plugin_names,
)
from k8s_scheduler.api.config.profiles.points import (
    EXTENSION_POINTS,
    MULTI_POINT,
    WEIGHTED_POINTS,
)
from k8s_scheduler.api.config.types import (
    KubeSchedulerProfile,
    PluginEntry,
    PluginFacts,
    Plugins,
    PluginSet,
    PluginUse,
    ResolvedProfile,
)


@dataclass(frozen=True, slots=True)
class Resolution:
    """What became of a profile; `profile` is of use only without errors."""

    profile: ResolvedProfile
    errors: list[FieldError]
    warnings: list[FieldError]


@dataclass(frozen=True, slots=True)
class _Expansion:
    """The plugins at one point, and those that multiPoint brings more than once."""

    names: tuple[str, ...]
    repeated: tuple[str, ...] = ()


def resolve_profile(
    profile: KubeSchedulerProfile,
    path: FieldPath,
    *,
    known: Mapping[str, PluginFacts],
    percentage_of_nodes_to_score: int,
) -> Resolution:
    """Work out which plugins a profile runs where, and everything wrong with how it says so.

    `percentage_of_nodes_to_score` is the one for all profiles, for those that say nothing.
    """
    sets = plugin_sets(profile.plugins)
    errors, warnings = check_plugin_names(sets, (*path, "plugins"), known)
    defaults = [PluginEntry(name, f.default_weight) for name, f in known.items() if f.by_default]
    multi_point = merge(defaults, sets[MULTI_POINT])
    expanded = {
        point: expand(point, sets[point], multi_point, known=known) for point in EXTENSION_POINTS
    }
    errors += _repeated(expanded, sets[MULTI_POINT], (*path, "plugins"))
    name = profile.scheduler_name or ""
    if not errors:
        errors += _counts(expanded, name, (*path, "plugins"))
        errors += _halves(expanded, known, (*path, "plugins"))
    used = {plugin for expansion in expanded.values() for plugin in expansion.names}
    args, args_errors, args_warnings = check_plugin_config(
        profile.plugin_config, (*path, "pluginConfig"), known=known, used=used
    )
    resolved = ResolvedProfile(
        scheduler_name=name,
        points={
            point: tuple(
                PluginUse(plugin, _weight(plugin, point, sets[point], multi_point))
                for plugin in expansion.names
                if known[plugin].supported
            )
            for point, expansion in expanded.items()
        },
        plugin_args=args,
        left_out=tuple(
            plugin.name
            for plugin in multi_point
            if plugin.name in used and not known[plugin.name].supported
        ),
        percentage_of_nodes_to_score=(
            percentage_of_nodes_to_score
            if profile.percentage_of_nodes_to_score is None
            else profile.percentage_of_nodes_to_score
        ),
    )
    return Resolution(resolved, errors + args_errors, warnings + args_warnings)


def plugin_sets(plugins: Plugins) -> dict[str, PluginSet]:
    fields = msgspec.structs.fields(Plugins)
    return {field.encode_name: getattr(plugins, field.name) for field in fields}


def merge(defaults: Sequence[PluginEntry], custom: PluginSet) -> tuple[PluginEntry, ...]:
    disabled = {plugin.name for plugin in custom.disabled}
    kept = () if "*" in disabled else tuple(p for p in defaults if p.name not in disabled)
    # Of a name given twice only the last replaces; the other is appended, and found out later.
    last = {plugin.name: i for i, plugin in enumerate(custom.enabled)}
    kept_names = {plugin.name for plugin in kept}
    replaced = [custom.enabled[last[p.name]] if p.name in last else p for p in kept]
    appended = [
        plugin
        for i, plugin in enumerate(custom.enabled)
        if plugin.name not in kept_names or last[plugin.name] != i
    ]
    return (*replaced, *appended)


def expand(
    point: str,
    at_point: PluginSet,
    multi_point: Sequence[PluginEntry],
    *,
    known: Mapping[str, PluginFacts],
) -> _Expansion:
    """Line up one point. Names with an error of their own are left out, so it is said once."""

    def implements(name: str) -> bool:
        return name in known and point in known[name].points

    named = dict.fromkeys(plugin.name for plugin in at_point.enabled if implements(plugin.name))
    disabled = {plugin.name for plugin in at_point.disabled}
    if "*" in disabled:
        return _Expansion(tuple(named))
    overriding: set[str] = set()
    brought: dict[str, None] = {}
    repeated = []
    for plugin in multi_point:
        if not implements(plugin.name) or plugin.name in disabled:
            continue
        if plugin.name in named:
            overriding.add(plugin.name)
        elif plugin.name in brought:
            repeated.append(plugin.name)
        else:
            brought[plugin.name] = None
    first = [name for name in named if name in overriding]
    rest = [name for name in named if name not in overriding]
    return _Expansion((*first, *brought, *rest), tuple(repeated))


def _weight(name: str, point: str, at_point: PluginSet, multi_point: Sequence[PluginEntry]) -> int:
    if point not in WEIGHTED_POINTS:
        return 0
    candidates = (*at_point.enabled, *multi_point)
    return next((plugin.weight or 1 for plugin in candidates if plugin.name == name), 1)


def _repeated(
    expanded: Mapping[str, _Expansion], custom: PluginSet, path: FieldPath
) -> list[FieldError]:
    first_points: dict[str, str] = {}
    for point, expansion in expanded.items():
        for name in expansion.repeated:
            first_points.setdefault(name, point)
    last = {plugin.name: i for i, plugin in enumerate(custom.enabled)}
    return [
        already_registered((*path, MULTI_POINT, "enabled", last[name], "name"), name, point)
        for name, point in first_points.items()
    ]


def _counts(expanded: Mapping[str, _Expansion], name: str, path: FieldPath) -> list[FieldError]:
    errors = []
    sorters = len(expanded["queueSort"].names)
    if sorters != 1:
        errors.append(
            FieldError(
                (*path, "queueSort"),
                f'only one queue sort plugin required for profile with scheduler name "{name}", '
                f"but got {sorters}",
            )
        )
    if not expanded["bind"].names:
        message = f'at least one bind plugin is needed for profile with scheduler name "{name}"'
        errors.append(FieldError((*path, "bind"), message))
    if len(expanded["placementGenerate"].names) > 1:
        message = (
            "at most one placement generate plugin is allowed "
            f'for profile with scheduler name "{name}"'
        )
        errors.append(FieldError((*path, "placementGenerate"), message))
    return errors


def _halves(
    expanded: Mapping[str, _Expansion], known: Mapping[str, PluginFacts], path: FieldPath
) -> list[FieldError]:
    """Check that plugins run where they collect what they need elsewhere; once for each plugin."""
    missing: dict[tuple[str, str], list[str]] = {}
    for point, expansion in expanded.items():
        for name in expansion.names:
            needed = known[name].needs.get(point)
            if known[name].supported and needed and name not in expanded[needed].names:
                missing.setdefault((name, needed), []).append(point)
    return [
        FieldError(
            (*path, needed),
            f'plugin "{name}" is enabled at {", ".join(points)} and needs what it finds at '
            f"{needed}: without it every pod would fail; enable it there too, or disable it at "
            f"{', '.join(points)}",
        )
        for (name, needed), points in missing.items()
    ]
