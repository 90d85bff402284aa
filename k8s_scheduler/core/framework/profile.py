"""A compiled profile: configuration turned into tuples of plugins, once.

Nothing is looked up by name while pods are decided. A profile never changes; a new
configuration makes a new one.
"""

import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from k8s_scheduler.api.config import ResolvedProfile
from k8s_scheduler.core.framework.dependencies import Row
from k8s_scheduler.core.framework.plugin import (
    BindPlugin,
    FilterPlugin,
    NormalizePlugin,
    Plugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ScorePlugin,
)
from k8s_scheduler.core.framework.views import Scores
from k8s_scheduler.core.state.changes import Change

PluginFactory = Callable[[Mapping[str, Any]], Plugin]
Point = TypeVar("Point")


@dataclass(frozen=True, slots=True)
class FilterStep:
    """A filter plugin, and what its view shows."""

    name: str
    plugin: FilterPlugin
    depends_on: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class ScoreStep:
    """A score plugin, its weight, and what its view shows."""

    name: str
    plugin: ScorePlugin
    depends_on: tuple[Row, ...]
    weight: int
    normalize: Callable[[Scores], Scores] | None


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything the engine runs for one schedulerName."""

    scheduler_name: str
    pre_enqueue: tuple[tuple[str, PreEnqueuePlugin], ...]
    queue_sort: QueueSortPlugin
    filters: tuple[FilterStep, ...]
    scores: tuple[ScoreStep, ...]
    binds: tuple[tuple[str, BindPlugin], ...]
    # Events that may help a rejected pod. All filters count, not only those that rejected it: a
    # node that came later may be held back by another.
    helped_by: Change


class ProfileError(Exception):
    """A profile that can't be run; the message is kube-scheduler's where it has one."""


def compile_profile(resolved: ResolvedProfile, factories: Mapping[str, PluginFactory]) -> Profile:
    """Make the plugins of a profile and line them up, point by point."""
    made: dict[str, Plugin] = {}
    for uses in resolved.points.values():
        for use in uses:
            if use.name not in made:
                made[use.name] = factories[use.name](resolved.plugin_args.get(use.name, {}))

    def at(point: str, kind: type[Point]) -> list[tuple[str, Point, int]]:
        found: list[tuple[str, Point, int]] = []
        for use in resolved.points.get(point, ()):
            plugin = made[use.name]
            if not isinstance(plugin, kind):
                raise ProfileError(f"plugin {use.name!r} does not extend {point} plugin")
            found.append((use.name, plugin, use.weight))
        return found

    name = resolved.scheduler_name
    queue_sorts = at("queueSort", QueueSortPlugin)
    if len(queue_sorts) != 1:
        raise ProfileError(
            f'only one queue sort plugin required for profile with scheduler name "{name}", '
            f"but got {len(queue_sorts)}"
        )
    binds = at("bind", BindPlugin)
    if not binds:
        raise ProfileError(
            f'at least one bind plugin is needed for profile with scheduler name "{name}"'
        )
    filters = at("filter", FilterPlugin)
    return Profile(
        scheduler_name=name,
        pre_enqueue=tuple((n, p) for n, p, _ in at("preEnqueue", PreEnqueuePlugin)),
        queue_sort=queue_sorts[0][1],
        filters=tuple(FilterStep(n, p, made[n].depends_on) for n, p, _ in filters),
        scores=tuple(
            ScoreStep(
                n,
                p,
                made[n].depends_on,
                weight=w or 1,
                normalize=p.normalize if isinstance(p, NormalizePlugin) else None,
            )
            for n, p, w in at("score", ScorePlugin)
        ),
        binds=tuple((n, p) for n, p, _ in binds),
        helped_by=functools.reduce(
            operator.or_, (made[n].helped_by for n, _, _ in filters), Change(0)
        ),
    )
