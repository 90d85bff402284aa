"""Times single plugins, in a tenth of the attempts.

A sampled attempt runs with a copy of its profile whose plugins look at the clock around every
call; all others run with the plain one and pay nothing. Which attempts are sampled follows from
the pod and the attempt's number, so one attempt is timed at all its points or at none, and a
replay times the same ones.
"""

import dataclasses
from collections.abc import Callable, Container, Mapping
from typing import Any, Final

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.in_flight import Flight
from k8s_scheduler.core.engine.metering.meter import Meter
from k8s_scheduler.core.framework import plugin as said
from k8s_scheduler.core.framework import points as watch
from k8s_scheduler.core.framework.profile import FilterStep, Profile, ScoreStep
from k8s_scheduler.core.framework.seeds import seed_of
from k8s_scheduler.core.queue.queued_pod import QueuedPod

# kube-scheduler's share of cycles.
SAMPLED_PERCENT: Final = 10

StatusOf = Callable[[Any], str]


@dataclasses.dataclass(frozen=True, slots=True)
class _Pair:
    """The profiles of one configuration, plain and timed; timed ones are made when first needed."""

    plain: Mapping[str, Profile]
    stopwatch: "Stopwatch"
    _timed: dict[str, Profile] = dataclasses.field(default_factory=dict)

    def of(self, pod: Pod, seed: int) -> Profile:
        name = pod.spec.scheduler_name
        if not is_sampled(seed):
            return self.plain[name]
        found = self._timed.get(name)
        if found is None:
            found = self._timed[name] = timed(self.plain[name], self.stopwatch)
        return found


class TimedProfiles:
    """Gives every attempt the profile that it runs with.

    A pod on its way keeps the one it set out with: configurations are numbered, and those in force
    before are kept for as long as somebody goes by them.
    """

    def __init__(
        self, profiles: Mapping[str, Profile], meter: Meter, perf: Callable[[], float]
    ) -> None:
        self._stopwatch = Stopwatch(meter, perf)
        self.generation = 0
        self._current = self._pair(profiles)
        self._earlier: dict[int, _Pair] = {}

    def _pair(self, profiles: Mapping[str, Profile]) -> _Pair:
        return _Pair(dict(profiles), self._stopwatch)

    # Configurations

    def begin(self, profiles: Mapping[str, Profile]) -> None:
        """Let new attempts run with other profiles."""
        self._earlier[self.generation] = self._current
        self.generation += 1
        self._current = self._pair(profiles)

    def restore(self, generation: int, earlier: Mapping[int, Mapping[str, Profile]]) -> None:
        """Be where a checkpoint was: its number, and what came before it."""
        self.generation = generation
        self._earlier = {number: self._pair(profiles) for number, profiles in earlier.items()}

    def keep(self, generations: Container[int]) -> None:
        """Forget the configurations that nobody goes by any more."""
        self._earlier = {n: pair for n, pair in self._earlier.items() if n in generations}

    def earlier(self) -> dict[int, Mapping[str, Profile]]:
        """Return the profiles of the configurations that were in force before, by number."""
        return {number: pair.plain for number, pair in self._earlier.items()}

    def serves(self, pod: Pod) -> bool:
        """Return whether the configuration in force has a profile for a pod."""
        return pod.spec.scheduler_name in self._current.plain

    # Attempts

    def of(self, queued: QueuedPod) -> Profile:
        """Return the profile for a pod's present attempt."""
        return self._current.of(queued.pod, queued.seed)

    def of_pod(self, pod: Pod) -> Profile:
        """Return the profile for a pod before its first attempt."""
        return self._current.of(pod, seed_of(pod, attempt=0))

    def of_flight(self, flight: Flight) -> Profile:
        """Return the profile that a pod on its way goes by."""
        profile = flight.profile
        if profile is None:
            is_current = flight.generation == self.generation
            pair = self._current if is_current else self._earlier[flight.generation]
            profile = flight.profile = pair.of(flight.queued.pod, flight.queued.seed)
        return profile


def is_sampled(seed: int) -> bool:
    """Return whether an attempt with this seed is one of those whose plugins are timed."""
    return seed % 100 < SAMPLED_PERCENT


class Stopwatch:
    """Makes calls that tell how long they took."""

    def __init__(self, meter: Meter, perf: Callable[[], float]) -> None:
        self._tell = meter.plugin_took
        self._perf = perf

    def timed(
        self, call: Callable[..., Any], *, plugin: str, point: str, status_of: StatusOf
    ) -> Callable[..., Any]:
        """Return the same call, timed."""
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
    """Return the profile with plugins that tell how long they take."""

    def wrap(name: str, plugin: Any) -> Any:
        return _Timed(name, plugin, stopwatch)

    def pairs(steps: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
        return tuple((name, wrap(name, plugin)) for name, plugin in steps)

    def steps(steps: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(dataclasses.replace(s, plugin=wrap(s.name, s.plugin)) for s in steps)

    def filters(steps: tuple[FilterStep, ...]) -> tuple[FilterStep, ...]:
        made = []
        for step in steps:
            plugin = wrap(step.name, step.plugin)
            counting = None if step.counting is None else plugin
            barring = None if step.barring is None else plugin
            thinning = None if step.thinning is None else plugin
            made.append(
                dataclasses.replace(
                    step, plugin=plugin, counting=counting, barring=barring, thinning=thinning
                )
            )
        return tuple(made)

    def scores(steps: tuple[ScoreStep, ...]) -> tuple[ScoreStep, ...]:
        made = []
        for step in steps:
            normalize = step.normalize
            if normalize is not None:
                normalize = stopwatch.timed(
                    normalize,
                    plugin=step.name,
                    point=watch.SCORE_NORMALIZE,
                    status_of=_success,
                )
            plugin = wrap(step.name, step.plugin)
            made.append(dataclasses.replace(step, plugin=plugin, normalize=normalize))
        return tuple(made)

    return dataclasses.replace(
        profile,
        pre_enqueue=pairs(profile.pre_enqueue),
        pre_filters=filters(profile.pre_filters),
        filters=filters(profile.filters),
        post_filters=steps(profile.post_filters),
        scores=scores(profile.scores),
        reserves=steps(profile.reserves),
        permits=pairs(profile.permits),
        pre_binds=steps(profile.pre_binds),
        post_binds=pairs(profile.post_binds),
    )


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
    "reserve": (watch.RESERVE, _permitted),
    "unreserve": (watch.UNRESERVE, _success),
    "permit": (watch.PERMIT, _permitted),
    "pre_bind": (watch.PRE_BIND, _success),
    "post_bind": (watch.POST_BIND, _success),
}
