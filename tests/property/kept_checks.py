"""Is what a core keeps of a shape what would be found from scratch?

From scratch means: another state, filled with the same nodes, pods and objects a moment ago, on
which nothing was kept and every count is made anew.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.builtins import BUILT_INS
from k8s_scheduler.core.engine.checkpoints import _fill, take_checkpoint
from k8s_scheduler.core.engine.checks.judging import Judge, Judgement
from k8s_scheduler.core.engine.nominated import Nominees
from k8s_scheduler.core.engine.shapes.shape_cache import Known
from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.profile import Profile, compile_profile
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.rows import NodeRow
from tests.inside import inside
from tests.property.kept_pods import setup


class StaleError(AssertionError):
    """Something else is kept than would be found."""


@dataclass(frozen=True)
class Answer:
    """What is said of a pod, by node: why not, or every plugin's part and the total."""

    rejected: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)
    message: str = ""
    preemption: Any = None
    error: str = ""


@dataclass(frozen=True)
class Checked:
    """Whether something was kept, and how many rows promises kept from the pod."""

    is_kept: bool = False
    rows_withheld: int = 0


@functools.cache
def profile_of(scheduler: str, *, preempts: bool) -> Profile:
    """Return a profile that no core uses."""
    (found,) = setup((scheduler,), preempts=preempts, keeps_evaluations=False).profiles
    return compile_profile(found, BUILT_INS)


class Scratch:
    """A state like a core's, in which nothing is kept yet."""

    def __init__(self, core: Scheduler) -> None:
        checkpoint = take_checkpoint(inside(core).state)
        self._state = Cache()
        _fill(self._state, checkpoint)
        for promise in checkpoint.nominations:
            self._state.nominations.put(promise.pod, promise.node)
        self._verdicts = VerdictTable()
        self._runtime = Runtime(self._state, self._verdicts)
        self._judge = Judge(self._state, self._runtime, self._verdicts)

    def judge(self, profile: Profile, pod: Pod) -> Answer:
        """Return what is said of a pod; whoever was promised room counts."""
        return asked(lambda: self._judge.judge(profile, pod))

    def evaluate(self, profile: Profile, pod: Pod, *, promises: bool = True) -> Answer:
        """Return what is said of a pod, without its message; with those who were promised room."""
        view, nodes = PodView(pod), self._state.nodes
        rows = nodes.present_rows()
        nominated = Nominees(self._state).counting_for(pod) if promises else {}
        try:
            filtered = self._runtime.run_filters(profile, view, rows, nominated)
            if filtered.pre_filter is not None:
                return Answer(message=str(filtered.pre_filter))
            feasible = filtered.feasible
            scored = None
            if len(feasible):
                scored = self._runtime.run_scores(profile, view, feasible)
        except PluginError as error:
            return Answer(error=str(error))
        names = {row: nodes.name_of(NodeRow(row)) for row in rows.tolist()}
        return Answer(
            {
                names[row]: str(self._verdicts[code])
                for row, code in zip(rows.tolist(), filtered.codes.tolist(), strict=True)
                if code
            },
            {} if scored is None else by_name(names, feasible, scored.by_plugin),
            {} if scored is None else total_by_name(names, feasible, scored.totals),
        )


def asked(ask: Any) -> Answer:
    """Return a judgement in words that can be compared."""
    try:
        found: Judgement = ask()
    except PluginError as error:
        return Answer(error=str(error))
    return Answer(
        {name: str(verdict) for name, verdict in found.rejected.items()},
        found.scores,
        found.totals,
        "" if found.diagnosis is None else found.diagnosis.message(),
        found.preemption,
    )


def by_name(names: Any, rows: Any, columns: Any) -> dict[str, dict[str, int]]:
    return {
        names[row]: {plugin: int(column[i]) for plugin, column in columns.items()}
        for i, row in enumerate(rows.tolist())
    }


def total_by_name(names: Any, rows: Any, totals: Any) -> dict[str, int]:
    return {names[row]: int(totals[i]) for i, row in enumerate(rows.tolist())}


def told(core: Scheduler, profile: Profile, kept: Known) -> Answer:
    """Return what an evaluation says."""
    nodes = inside(core).cache.nodes
    rows = nodes.present_rows()
    names = {row: nodes.name_of(NodeRow(row)) for row in rows.tolist()}
    filtered = kept.filtered()
    scored = kept.scored(profile, filtered.feasible)
    totals = total_by_name(names, filtered.feasible, scored.totals)
    whole = kept.totals(profile)
    if len(filtered.feasible):
        direct = total_by_name(names, filtered.feasible, whole.take(filtered.feasible))
        _same("totals of an evaluation", direct, totals)
    feasible = set(filtered.feasible.tolist())
    others = [row for row in range(len(whole)) if row not in feasible and whole[row] >= 0]
    _same("rows with a total that can't be chosen", others, [])
    return Answer(
        {
            names[row]: str(inside(core).shapes._verdicts[code])
            for row, code in zip(rows.tolist(), filtered.codes.tolist(), strict=True)
            if code
        },
        by_name(names, filtered.feasible, scored.by_plugin),
        totals,
    )


def check(
    core: Scheduler,
    scratch: Scratch,
    pod: Pod,
    *,
    preempts: bool,
    start: int,
    judges: bool = True,
) -> Checked:
    """Raise StaleError if a core thinks what it should not; return what it kept.

    Whatever is kept is looked at itself; the core's judgement, as far as it goes by that, only if
    it is asked to judge.
    """
    if not len(inside(core).cache.nodes):
        return Checked()
    profile = inside(core).profiles[pod.spec.scheduler_name]
    other = profile_of(pod.spec.scheduler_name, preempts=preempts)
    nominated = inside(core).cycle.nominees.counting_for(pod)
    kept = inside(core).shapes.find(profile, QueuedPod(pod, timestamp=0.0), None, nominated)
    withheld = 0
    if kept is not None:
        fresh = scratch.evaluate(other, pod)
        if nominated:
            alone = scratch.evaluate(other, pod, promises=False)
            withheld = len(alone.scores) - len(fresh.scores)
        # Who chooses first may know less than who is told everything.
        try:
            if start % 2:
                _same_choice(core, kept, fresh, profile, start)
            said = told(core, profile, kept)
        except NotKeptError:
            kept = None
        else:
            _same("evaluation", said, fresh)
            _same_choice(core, kept, fresh, profile, start)
    if judges or kept is None:
        _same("judgement", asked(lambda: core.judge(pod)), scratch.judge(other, pod))
    return Checked(is_kept=kept is not None, rows_withheld=withheld)


def _same_choice(core: Scheduler, kept: Known, fresh: Answer, profile: Profile, start: int) -> None:
    nodes = inside(core).cache.nodes
    start %= nodes.row_count
    best = kept.best(profile, start=start)
    highest = max(fresh.totals.values(), default=None)
    rows = sorted(nodes.row_of(n) for n, total in fresh.totals.items() if total == highest)
    later = [row for row in rows if row >= start]
    _same("choice", best, next(iter(later or rows), None))


def _same(what: str, kept: Any, fresh: Any) -> None:
    if kept != fresh:
        raise StaleError(f"{what}:\n kept  {kept}\n fresh {fresh}")
