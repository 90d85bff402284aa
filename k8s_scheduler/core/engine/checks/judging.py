"""A decision laid open: every node's verdict and every plugin's score, with nothing changed.

The same runtime that decides for the daemon, asked for all it knows. Used where a decision is to
be shown or compared instead of carried out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.nominated import Nominees
from k8s_scheduler.core.engine.preemption.evaluator import AT_ONCE, Evaluator, UnplacedCase
from k8s_scheduler.core.engine.shapes.shape_cache import Known, ShapeCache
from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.framework.diagnosis import Diagnosis, diagnose
from k8s_scheduler.core.framework.evaluation.runtime import Filtered, Nominated, Runtime
from k8s_scheduler.core.framework.preemption import DryRunError, PreemptionPlugin, Victims
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.reasons import Verdict, VerdictTable
from k8s_scheduler.core.framework.seeds import seed_of
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.protocols import PlacedPods
from k8s_scheduler.core.state.rows import NodeRow


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which preemption would make room: who would go, most important first."""

    victims: tuple[str, ...]
    pdb_violations: int


@dataclass(frozen=True, slots=True)
class Preemption:
    """What preemption could do for a pod that fits nowhere.

    `not_eligible` says why the pod may not preempt; `picks` holds the candidate that would be
    chosen.
    """

    not_eligible: str = ""
    candidates: Mapping[NodeName, Candidate] = field(default_factory=dict)
    picks: tuple[NodeName, ...] = ()
    # Why nothing could be found out.
    error: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the plugins say about one pod on all nodes."""

    pre_filter: Verdict | None
    rejected: Mapping[NodeName, Verdict]
    feasible: tuple[NodeName, ...]
    scores: Mapping[NodeName, Mapping[str, int]]
    totals: Mapping[NodeName, int]
    diagnosis: Diagnosis | None
    preemption: Preemption | None = None


class Judge:
    """Judges pods against one state."""

    def __init__(
        self,
        state: PlacedPods,
        runtime: Runtime,
        verdicts: VerdictTable,
        shapes: ShapeCache | None = None,
    ) -> None:
        """Judge on a state; without `shapes`, every pod is judged from scratch."""
        self._shapes = shapes
        self._state = state
        self._runtime = runtime
        self._verdicts = verdicts
        self._nominees = Nominees(state)

    def judge(self, profile: Profile, pod: Pod, *, makes_room: bool = True) -> Judgement:
        """Return everything about the pod. Raises PluginError and QuantityError.

        What preemption could do is found out only if it `makes_room`: it is asked of every node.
        """
        view = PodView(pod)
        nodes = self._state.nodes
        rows = nodes.present_rows()
        nominated = self._nominees.counting_for(pod)
        kept = self._kept(profile, pod, nominated) if len(rows) else None
        filtered = (
            self._runtime.run_filters(profile, view, rows, nominated)
            if kept is None
            else kept.filtered()
        )
        names = {row: nodes.name_of(NodeRow(row)) for row in rows.tolist()}
        rejected = {
            names[row]: self._verdicts[code]
            for row, code in zip(rows.tolist(), filtered.codes.tolist(), strict=True)
            if code
        }
        feasible = tuple(names[row] for row in filtered.feasible.tolist())
        if not feasible:
            diagnosis = diagnose(filtered, self._verdicts)
            preemption = (
                self._preemption(profile, pod, rows, filtered, nominated) if makes_room else None
            )
            return Judgement(filtered.pre_filter, rejected, (), {}, {}, diagnosis, preemption)
        scored = (
            self._runtime.run_scores(profile, view, filtered.feasible)
            if kept is None
            else kept.scored(profile, filtered.feasible)
        )
        columns = {plugin: column.tolist() for plugin, column in scored.by_plugin.items()}
        return Judgement(
            pre_filter=None,
            rejected=rejected,
            feasible=feasible,
            scores={
                name: {plugin: column[i] for plugin, column in columns.items()}
                for i, name in enumerate(feasible)
            },
            totals=dict(zip(feasible, scored.totals.tolist(), strict=True)),
            diagnosis=None,
        )

    def _kept(self, profile: Profile, pod: Pod, nominated: Nominated) -> Known | None:
        """Return what is known of the pod's shape, if exactly its like is kept."""
        if self._shapes is None:
            return None
        queued = QueuedPod(pod, timestamp=0.0)
        found = self._shapes.find(profile, queued, None, nominated)
        if found is None or found.labels != queued.shape.labels:
            return None
        try:
            found.filtered()
        except NotKeptError:
            return None
        return found

    def _preemption(
        self, profile: Profile, pod: Pod, rows: Rows, filtered: Filtered, nominated: Nominated
    ) -> Preemption | None:
        """Return what the first plugin that preempts would find, on every node that might help."""
        for step in profile.post_filters:
            plugin = step.plugin
            if not isinstance(plugin, PreemptionPlugin):
                continue
            evaluator = Evaluator(
                self._state,
                self._runtime,
                self._verdicts,
                UnplacedCase(
                    profile=profile,
                    step=step,
                    pod=pod,
                    rows=rows,
                    filtered=filtered,
                    nominated=nominated,
                    seed=seed_of(pod, attempt=1),
                    at_once=AT_ONCE,
                ),
            )
            if refusal := plugin.not_eligible(pod, evaluator):
                return Preemption(not_eligible=refusal)
            try:
                found, _ = plugin.candidates(evaluator, evaluator.resolvable_count())
            except DryRunError as error:
                return Preemption(error=str(error))
            if evaluator.failures:
                return Preemption(error=evaluator.failures[0])
            return Preemption(
                candidates={node: _candidate(victims) for node, victims in found.items()},
                picks=(plugin.pick(found, evaluator.seed()),) if found else (),
            )
        return None


def _candidate(victims: Victims) -> Candidate:
    names = tuple(f"{p.metadata.namespace}/{p.metadata.name}" for p in victims.pods)
    return Candidate(names, victims.pdb_violations)
