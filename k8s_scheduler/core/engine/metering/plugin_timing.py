"""Times single plugins, in a tenth of the attempts.

A sampled attempt runs with a copy of its profile whose plugins look at the clock around every
call; all others run with the plain one and pay nothing. Which attempts are sampled follows from
the pod and the attempt's number, so one attempt is timed at all its points or at none, and a
replay times the same ones.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

from k8s_scheduler.core.engine.metering.meter import Meter
from k8s_scheduler.core.framework import plugin as said
from k8s_scheduler.core.framework import points as watch
from k8s_scheduler.core.framework.profile import Profile, ScoreStep

# kube-scheduler's share of cycles.
SAMPLED_PERCENT: Final = 10

StatusOf = Callable[[Any], str]


def is_sampled(seed: int) -> bool:
    return seed % 100 < SAMPLED_PERCENT


class Stopwatch:
    """Makes calls that tell how long they took."""

    def __init__(self, meter: Meter, perf: Callable[[], float]) -> None:
        self._tell = meter.plugin_took
        self._perf = perf

    def timed(
        self, call: Callable[..., Any], *, plugin: str, point: str, status_of: StatusOf
    ) -> Callable[..., Any]:
        tell, perf = self._tell, self._perf

        def run(*args: Any, **kwargs: Any) -> Any:
            started = perf()
            try:
                found = call(*args, **kwargs)
            except Exception:
                tell(plugin, point, watch.ERROR, perf() - started)
                raise
            seconds = perf() - started
            tell(plugin, point, status_of(found), seconds)
            return found

        return run


def timed(profile: Profile, stopwatch: Stopwatch) -> Profile:
    def of(step: Any) -> Any:
        if isinstance(step, tuple):
            name, plugin = step
            return name, _Timed(name, plugin, stopwatch)
        wrapped = _Timed(step.name, step.plugin, stopwatch)
        # A step names its plugin once more for each thing that the plugin can do besides.
        names = [f.name for f in dataclasses.fields(step) if getattr(step, f.name) is step.plugin]
        found = dict.fromkeys(names, wrapped)
        if isinstance(step, ScoreStep) and step.normalize is not None:
            found["normalize"] = wrapped.normalize
        return dataclasses.replace(step, **found)

    points: dict[str, Any] = {p: tuple(map(of, getattr(profile, p))) for p in _STEPS}
    return dataclasses.replace(profile, **points)


class _Timed:
    """A plugin that looks at the clock around its calls; in all else the plugin itself."""

    def __init__(self, name: str, plugin: Any, stopwatch: Stopwatch) -> None:
        self._name = name
        self._plugin = plugin
        self._stopwatch = stopwatch

    def __getattr__(self, name: str) -> Any:
        """Return what the plugin has; a timed call is made once, and found without this then."""
        found = getattr(self._plugin, name)
        if name not in _POINTS:
            return found
        point, status_of = _POINTS[name]
        run = self._stopwatch.timed(found, plugin=self._name, point=point, status_of=status_of)
        setattr(self, name, run)
        return run


# What an answer comes to


def _success(_found: Any) -> str:
    return watch.SUCCESS


def _gated(found: Any) -> str:
    return watch.SUCCESS if found is None else watch.UNRESOLVABLE


def _prepared(found: Any) -> str:
    if isinstance(found, said.Reject):
        return watch.rejected(resolvable=found.resolvable)
    return watch.SKIP if found is said.SKIP else watch.SUCCESS


def _filtered(codes: Any) -> str:
    # One call judges many nodes: it is a no if it is a no for all of them.
    return watch.UNSCHEDULABLE if len(codes) and codes.all() else watch.SUCCESS


def _made_room(found: Any) -> str:
    return watch.UNSCHEDULABLE if found.nominated is None else watch.SUCCESS


def _permitted(found: Any) -> str:
    if isinstance(found, said.Rejection):
        return watch.UNSCHEDULABLE
    return watch.WAIT if isinstance(found, said.Wait) else watch.SUCCESS


# The points of a profile that are timed.
_STEPS: Final = (
    "pre_enqueue",
    "pre_filters",
    "filters",
    "post_filters",
    "scores",
    "reserves",
    "permits",
    "pre_binds",
    "post_binds",
)
_POINTS: Final[Mapping[str, tuple[str, StatusOf]]] = {
    "pre_enqueue": (watch.PRE_ENQUEUE, _gated),
    "prepare": (watch.PRE_FILTER, _prepared),
    "add_pod": (watch.PRE_FILTER_ADD_POD, _success),
    "remove_pod": (watch.PRE_FILTER_REMOVE_POD, _success),
    "remove_pods": (watch.PRE_FILTER_REMOVE_POD, _success),
    "without": (watch.PRE_FILTER_REMOVE_POD, _success),
    "filter": (watch.FILTER, _filtered),
    "post_filter": (watch.POST_FILTER, _made_room),
    "pre_score": (watch.PRE_SCORE, _prepared),
    "score": (watch.SCORE, _success),
    "normalize": (watch.SCORE_NORMALIZE, _success),
    "reserve": (watch.RESERVE, _permitted),
    "unreserve": (watch.UNRESERVE, _success),
    "permit": (watch.PERMIT, _permitted),
    "pre_bind": (watch.PRE_BIND, _success),
    "post_bind": (watch.POST_BIND, _success),
}
