"""Profiles, compiled: configuration becomes, per point, an ordered tuple of plugins.

PreFilter and Filter can be configured apart, and so can PreScore and Score. A plugin that is
enabled at Filter alone still prepares its term, because nothing can be filtered without; one that
is enabled at PreFilter alone can reject the pod or narrow the nodes, and filters nothing. The
same goes for PreScore: it is part of scoring, and at a point of its own it decides nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeGuard, TypeVar
from weakref import WeakKeyDictionary

from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.api.kinds import Kind, joined
from k8s_scheduler.core.framework.dependencies import (
    Declarations,
    Object,
    Row,
    events_that_help,
    looks_elsewhere,
    sees_pods_as_counts,
)
from k8s_scheduler.core.framework.dry_run_plugins import (
    BarringPlugin,
    CountingPlugin,
    RoomyPlugin,
    SiftingPlugin,
    ThinningPlugin,
)
from k8s_scheduler.core.framework.plugin import (
    AttachedPlugin,
    BindPlugin,
    FilterPlugin,
    GroupingPlugin,
    NormalizePlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreparedPlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    WritingPlugin,
)
from k8s_scheduler.core.framework.preemption import PreemptionPlugin
from k8s_scheduler.core.framework.registry import ProfileError, Registration
from k8s_scheduler.core.framework.views.rows_view import Scores
from k8s_scheduler.core.state.news.changes import COUNTED_PODS, Change
from k8s_scheduler.core.state.news.facts import SHIFTED, fact_of

Point = TypeVar("Point")
# By the plugin's class, which may be one that a reload replaces.
_ANSWERS: WeakKeyDictionary[type, dict[type, bool]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class FilterStep:
    """A filter plugin, what its view shows, and whether it may say no before any node is seen."""

    name: str
    plugin: FilterPlugin
    declared: Declarations
    pre_filters: bool
    filters: bool
    # The plugin, if its term counts pods.
    counting: CountingPlugin | None
    # The plugin, if it can say besides who of many pods is in the way.
    barring: BarringPlugin | None
    # The plugin, if it goes by sums of what pods take and can say how much more it would let in.
    roomy: RoomyPlugin | None
    # The plugin, if it can say of which pods only so many may come: by ports, volumes or counts.
    sifting: SiftingPlugin | None
    # The plugin, if its term counts pods and it can take away many at once.
    thinning: ThinningPlugin | None
    # The facts that it may read and that are others with some pods more or less on a row.
    shifted: int
    # Whether a verdict on one row may depend on what is elsewhere.
    is_wide: bool
    # Whether all it sees of pods is counts (which see `state.counters`).
    counts_pods: bool
    # Whether it may be asked about one row for all that look alike to it.
    by_group: bool


@dataclass(frozen=True, slots=True)
class ScoreStep:
    """A score plugin, its weight, and what its view shows."""

    name: str
    plugin: ScorePlugin
    declared: Declarations
    weight: int
    normalize: Callable[[Scores], Scores] | None
    # Whether it may be asked about one row for all that look alike to it.
    by_group: bool


@dataclass(frozen=True, slots=True)
class PluginStep(Generic[Point]):
    """A plugin at one point, and what its view shows."""

    name: str
    plugin: Point
    declared: Declarations
    # Whether it makes room by evicting pods.
    preempts: bool
    # The kinds of objects that it may have changed.
    writes: tuple[Kind, ...]
    # Whether it has something to do only for pods that it has prepared something for.
    only_prepared: bool


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything the engine runs for one schedulerName."""

    scheduler_name: str
    pre_enqueue: tuple[tuple[str, PreEnqueuePlugin], ...]
    queue_sort: QueueSortPlugin
    # All that prepare a term, in the order of PreFilter; and those that filter, in Filter's.
    pre_filters: tuple[FilterStep, ...]
    filters: tuple[FilterStep, ...]
    post_filters: tuple[PluginStep[PostFilterPlugin], ...]
    scores: tuple[ScoreStep, ...]
    reserves: tuple[PluginStep[ReservePlugin], ...]
    permits: tuple[tuple[str, PermitPlugin], ...]
    pre_binds: tuple[PluginStep[PreBindPlugin], ...]
    binds: tuple[tuple[str, BindPlugin], ...]
    post_binds: tuple[tuple[str, PostBindPlugin], ...]
    # By plugin: the events on rows, and the kinds of objects (None: any), that may help a pod it
    # rejected.
    helped_by: Mapping[str, Change]
    helpful_kinds: Mapping[str, tuple[Kind, ...] | None]
    # The kinds of objects that plugins read.
    kinds: tuple[Kind, ...]
    # Plugins that allow and reject pods that wait for them.
    attached: tuple[AttachedPlugin, ...]
    # How many nodes have to be found, in percent; 0 stands for all of them.
    percentage_of_nodes_to_score: int = 0

    @property
    def filter_names(self) -> frozenset[str]:
        return frozenset(step.name for step in self.pre_filters)

    @property
    def preempts(self) -> bool:
        """Return whether pods may be evicted for others."""
        return any(step.preempts for step in self.post_filters)

    @property
    def writes(self) -> tuple[Kind, ...]:
        """Return the kinds of objects that plugins may have changed before a pod is bound."""
        return tuple(sorted({kind for step in self.pre_binds for kind in step.writes}))

    @property
    def wide(self) -> frozenset[str]:
        """Return the plugins whose verdicts on a row may depend on what is elsewhere."""
        return frozenset(step.name for step in self.pre_filters if step.is_wide)

    @property
    def helped_by_counts(self) -> frozenset[str]:
        """Return the plugins that pods on nodes help by what is counted of them, not otherwise.

        Dry runs ask those as well that come after one that rejects: of these the same must be true.
        """
        found: list[str] = []
        for step in reversed(self.filters):
            if step.counts_pods:
                found.append(step.name)
            elif self.helped_by[step.name] & COUNTED_PODS:
                break
        return frozenset(found)


def compile_profiles(
    resolved: Sequence[ResolvedProfile], plugins: Mapping[str, Registration]
) -> dict[str, Profile]:
    """Return the profiles by name, ready to run; raises ProfileError if one can't be."""
    profiles = {p.scheduler_name: compile_profile(p, plugins) for p in resolved}
    if not profiles:
        raise ProfileError("at least one profile is needed")
    return profiles


def compile_profile(resolved: ResolvedProfile, plugins: Mapping[str, Registration]) -> Profile:
    """Make the plugins of a profile and line them up, point by point."""
    made: dict[str, Plugin] = {}
    for uses in resolved.points.values():
        for use in uses:
            if use.name not in made:
                made[use.name] = plugins[use.name].make(resolved.plugin_args.get(use.name, {}))

    def at(point: str, kind: type[Point]) -> tuple[tuple[str, Point], ...]:
        # Configuration goes by upstream's table of points; a plugin of ours may do at one point
        # what upstream's does at two.
        return tuple((n, p) for n, p, _ in weighted(point, kind))

    def weighted(point: str, kind: type[Point]) -> list[tuple[str, Point, int]]:
        uses = ((made[use.name], use) for use in resolved.points.get(point, ()))
        return [(use.name, p, use.weight) for p, use in uses if _is_a(p, kind)]

    def steps(point: str, kind: type[Point]) -> tuple[PluginStep[Point], ...]:
        return tuple(
            PluginStep(
                n,
                p,
                Declarations(made[n].depends_on),
                preempts=_is_a(p, PreemptionPlugin),
                writes=p.writes if _is_a(p, WritingPlugin) else (),
                only_prepared=_is_a(p, PreparedPlugin) and p.only_prepared,
            )
            for n, p in at(point, kind)
        )

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
    pre_filters, filters = _filter_steps(
        at("preFilter", FilterPlugin), at("filter", FilterPlugin), made
    )
    return Profile(
        scheduler_name=name,
        pre_enqueue=at("preEnqueue", PreEnqueuePlugin),
        queue_sort=queue_sorts[0][1],
        pre_filters=pre_filters,
        filters=filters,
        post_filters=steps("postFilter", PostFilterPlugin),
        scores=tuple(
            ScoreStep(
                n,
                p,
                Declarations(made[n].depends_on),
                weight=w or 1,
                normalize=p.normalize if _is_a(p, NormalizePlugin) else None,
                by_group=_is_a(p, GroupingPlugin) and p.judges_by_group,
            )
            for n, p, w in weighted("score", ScorePlugin)
        ),
        reserves=steps("reserve", ReservePlugin),
        permits=at("permit", PermitPlugin),
        pre_binds=steps("preBind", PreBindPlugin),
        binds=binds,
        post_binds=at("postBind", PostBindPlugin),
        helped_by={name: _help_for(plugin) for name, plugin in made.items()},
        helpful_kinds={
            name: None if _goes_by_anything(plugin) else _kinds(plugin)
            for name, plugin in made.items()
        },
        kinds=joined(kind for plugin in made.values() for kind in _kinds(plugin)),
        percentage_of_nodes_to_score=resolved.percentage_of_nodes_to_score,
        attached=tuple(p for p in made.values() if _is_a(p, AttachedPlugin)),
    )


def _filter_steps(
    pre_filters: tuple[tuple[str, FilterPlugin], ...],
    filters: tuple[tuple[str, FilterPlugin], ...],
    made: Mapping[str, Plugin],
) -> tuple[tuple[FilterStep, ...], tuple[FilterStep, ...]]:
    """Return the steps in the order of PreFilter, and those that filter in the order of Filter."""
    first, second = dict(pre_filters), dict(filters)
    steps = {
        name: FilterStep(
            name,
            plugin,
            Declarations(made[name].depends_on),
            pre_filters=name in first,
            filters=name in second,
            counting=plugin if _is_a(plugin, CountingPlugin) else None,
            barring=plugin if _is_a(plugin, BarringPlugin) else None,
            roomy=plugin if _is_a(plugin, RoomyPlugin) else None,
            sifting=plugin if _is_a(plugin, SiftingPlugin) else None,
            thinning=plugin if _is_a(plugin, ThinningPlugin) else None,
            shifted=_shifted(made[name]),
            is_wide=any(map(looks_elsewhere, made[name].depends_on)),
            counts_pods=sees_pods_as_counts(made[name].depends_on),
            by_group=_is_a(plugin, GroupingPlugin) and plugin.judges_by_group,
        )
        for name, plugin in (first | second).items()
    }
    return tuple(steps.values()), tuple(steps[name] for name in second)


def _shifted(plugin: Plugin) -> int:
    """Return what a plugin may see otherwise of a row with some pods more or less."""
    found = 0
    for dependency in plugin.depends_on:
        if isinstance(dependency, Row):
            found |= fact_of(dependency.column)
    return found & SHIFTED


def _help_for(plugin: Plugin) -> Change:
    """Return the events that may help a pod the plugin rejected."""
    if _goes_by_anything(plugin):
        return ~Change(0)
    return events_that_help(plugin.depends_on)


def _goes_by_anything(plugin: Plugin) -> bool:
    """Return whether a plugin rejects without having said by what it goes."""
    rejects_late = _is_a(plugin, ReservePlugin) or _is_a(plugin, PermitPlugin)
    return rejects_late and not _is_a(plugin, FilterPlugin)


def _is_a(plugin: object, kind: type[Point]) -> TypeGuard[Point]:
    """Return whether a plugin is of a kind, as its class says.

    A protocol takes 30 us to answer, and a profile asks 150 times.
    """
    answers = _ANSWERS.setdefault(type(plugin), {})
    if kind not in answers:
        answers[kind] = isinstance(plugin, kind)
    return answers[kind]


def _kinds(plugin: Plugin) -> tuple[Kind, ...]:
    return tuple(d.kind for d in plugin.depends_on if isinstance(d, Object))
