"""One decision: judge all nodes, score those that pass, pick one.

A pod that was promised a node goes there if it fits. Ties: among rows with the highest total, the
first at or after the attempt's seed modulo the table's length. Fair over pods, and the same
whenever the same decision is replayed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.decision.sampling import Sampling
from k8s_scheduler.core.engine.highest import first_highest
from k8s_scheduler.core.engine.nominated import Nominees
from k8s_scheduler.core.engine.shapes.shape_cache import Known, ShapeCache
from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.engine.shapes.verification import Verifier
from k8s_scheduler.core.framework import points
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.diagnosis import Diagnosis, diagnose
from k8s_scheduler.core.framework.evaluation.runtime import Filtered, Nominated, Runtime
from k8s_scheduler.core.framework.extenders import Opinion, refusal
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Scores
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow

_ALL = 100
# A node that came to fit while extenders were asked; the change that did it wakes the pod.
_NOT_ASKED = refusal("node(s) were not known to the extenders yet", resolvable=False)


class Placement(msgspec.Struct, frozen=True):
    """The node that was chosen, and what was found out on the way."""

    row: NodeRow
    state: CycleState


@dataclass(frozen=True, slots=True)
class NoNode:
    """No node takes the pod: why, and what was asked to find out."""

    diagnosis: Diagnosis
    rows: Rows
    filtered: Filtered | None = None
    nominated: Nominated = field(default_factory=dict)


class Cycle:
    """Decides for one pod at a time; changes nothing but where the next sampling starts."""

    def __init__(
        self,
        state: Tables,
        runtime: Runtime,
        verdicts: VerdictTable,
        *,
        watches: Mapping[str, Watch] | None = None,
        shapes: ShapeCache | None = None,
        verifier: Verifier | None = None,
    ) -> None:
        """Decide on a state; without `shapes`, every pod is judged from scratch."""
        self._verifier = verifier
        # By profile; one without a watch is not timed.
        self._watches: Mapping[str, Watch] = {} if watches is None else watches
        self._state = state
        self._runtime = runtime
        self._verdicts = verdicts
        self._shapes = shapes
        self.sampling = Sampling(state.nodes)
        self.nominees = Nominees(state)

    def look(self, profile: Profile, queued: QueuedPod) -> tuple[NodeName, ...] | NoNode:
        """Return the nodes that come into question for a pod, or why none does."""
        decision = self._filter(profile, queued, None, self.nominees.counting_for(queued.pod))
        if isinstance(decision, NoNode):
            return decision
        nodes = self._state.nodes
        return tuple(nodes.name_of(NodeRow(row)) for row in decision.feasible.tolist())

    def diagnose(self, profile: Profile, queued: QueuedPod) -> NoNode | NodeRow:
        """Return why no node takes a pod, as an attempt would find; one that does, if there is.

        From scratch, and nothing is timed: no attempt is made. Raises PluginError.
        """
        nominated = self.nominees.counting_for(queued.pod)
        found = self._filter(profile, queued, None, nominated, is_timed=False)
        return found if isinstance(found, NoNode) else NodeRow(int(found.feasible[0]))

    def decide(
        self, profile: Profile, queued: QueuedPod, opinion: Opinion | None = None
    ) -> Placement | NoNode:
        """Return where the pod goes, or why nowhere. Raises PluginError.

        With the `opinion` of extenders, which is about nodes as they were, everything is judged
        as it is now, and only nodes that they allowed come into question.
        """
        # What earlier pods asked for may be given back now: no ids or columns are held.
        self._state.nodes.labels.tidy()
        pod = queued.view
        nominated = self.nominees.counting_for(queued.pod)
        if opinion is None:
            if len(self._state.nominations):
                promised = self._promised(profile, queued.pod, pod, nominated)
                if promised is not None:
                    return promised
            decided = self._from_kept(profile, queued, nominated)
            if decided is not None:
                return decided
        found = self._filter(profile, queued, opinion, nominated)
        if isinstance(found, NoNode):
            return found
        state, feasible = found.before.state, found.feasible
        if self._shapes is not None:
            self._shapes.pass_over(profile, queued, found.before.names)
        if 0 < profile.percentage_of_nodes_to_score < _ALL:
            rows = self._state.nodes.present_rows()
            feasible = self.sampling.cut(rows, found, profile.percentage_of_nodes_to_score)
        if len(feasible) == 1:
            return Placement(NodeRow(int(feasible[0])), state)
        watch = self._watches.get(profile.scheduler_name)
        totals = self._runtime.run_scores(profile, pod, feasible, watch).totals
        if opinion is not None:
            totals = totals + self._bonus(opinion, feasible)
        start = queued.seed % self._state.nodes.row_count
        # Rows are ascending.
        place = first_highest(totals, start=int(np.searchsorted(feasible, start)))
        return Placement(NodeRow(int(feasible[place])), state)

    # From what is kept

    def _from_kept(
        self, profile: Profile, queued: QueuedPod, nominated: Nominated
    ) -> Placement | NoNode | None:
        """Return what is decided by what is known of the pod's shape; None if that is not enough.

        What fails is decided from scratch, which knows better or fails in the right words.
        """
        try:
            kept = self._kept(profile, queued, nominated)
            return None if kept is None else self._decide_as_kept(profile, queued, kept, nominated)
        except (NotKeptError, PluginError):
            return None

    def _kept(self, profile: Profile, queued: QueuedPod, nominated: Nominated) -> Known | None:
        """Return what is known of the pod's shape; sampling and few nodes are not for that."""
        if self._shapes is None or 0 < profile.percentage_of_nodes_to_score < _ALL:
            return None
        if not len(self._state.nodes):
            return None
        watch = self._watches.get(profile.scheduler_name)
        started = 0.0 if watch is None else watch.now()
        found = self._shapes.find(profile, queued, watch, nominated)
        if found is None:
            return None
        if watch is not None:
            # Terms are at hand; catching up is filtering.
            watch.ended(points.FILTER, points.SUCCESS, started)
        if self._verifier is None:
            return found
        epoch = self._verdicts.epoch
        if self._verifier.approves(profile, queued, found, nominated):
            # Looking may have given codes another meaning.
            return found if self._verdicts.epoch == epoch else None
        self._shapes.drop(profile, queued)
        return None

    def _decide_as_kept(
        self, profile: Profile, queued: QueuedPod, kept: Known, nominated: Nominated
    ) -> Placement | NoNode:
        start = queued.seed % self._state.nodes.row_count
        watch = self._watches.get(profile.scheduler_name)
        started = 0.0 if watch is None else watch.now()
        row = kept.best(profile, start=start)
        if row is not None:
            if watch is not None:
                watch.ended(points.SCORE, points.SUCCESS, started)
            return Placement(row, kept.state)
        filtered = kept.filtered()
        if kept.labels != queued.shape.labels:
            # PostFilter asks what was not asked before: of this pod, not of another one.
            before = self._runtime.run_pre_filters(profile, queued.view)
            filtered = replace(filtered, before=before)
        diagnosis = diagnose(filtered, self._verdicts)
        return NoNode(diagnosis, self._state.nodes.present_rows(), filtered, nominated)

    # From scratch

    def _filter(
        self,
        profile: Profile,
        queued: QueuedPod,
        opinion: Opinion | None,
        nominated: Nominated,
        *,
        is_timed: bool = True,
    ) -> Filtered | NoNode:
        rows = self._state.nodes.present_rows()
        if not len(rows):
            return NoNode(Diagnosis(node_count=0, verdicts=()), rows)
        watch = self._watches.get(profile.scheduler_name) if is_timed else None
        pod = queued.view
        filtered = self._runtime.run_filters(profile, pod, rows, nominated, watch=watch)
        if opinion is not None and filtered.pre_filter is None:
            filtered = self._respect(opinion, rows, filtered)
        if len(filtered.feasible):
            return filtered
        diagnosis = diagnose(filtered, self._verdicts)
        return NoNode(diagnosis, rows, filtered, nominated)

    def _respect(self, opinion: Opinion, rows: Rows, filtered: Filtered) -> Filtered:
        nodes = self._state.nodes
        codes = filtered.codes.copy()
        allowed = frozenset(opinion.allowed)
        for position in np.flatnonzero(codes == 0).tolist():
            name = nodes.name_of(NodeRow(int(rows[position])))
            if name not in allowed:
                verdict = opinion.refused.get(name, _NOT_ASKED)
                codes[position] = self._verdicts.code(verdict)
        outside = filtered.outside_code
        return Filtered(codes, rows[codes == 0], filtered.before, outside)

    def _bonus(self, opinion: Opinion, rows: Rows) -> Scores:
        names = (self._state.nodes.name_of(NodeRow(row)) for row in rows.tolist())
        return np.array([opinion.bonus.get(name, 0) for name in names], dtype=np.int64)

    def _promised(
        self, profile: Profile, pod: Pod, view: PodView, nominated: Nominated
    ) -> Placement | None:
        """Return the node that the pod was promised, if it takes the pod now."""
        name = self._state.nominations.node_of(PodUid(pod.metadata.uid))
        row = self._state.nodes.row_of(name) if name else None
        if row is None or self._state.nodes.node_at(row) is None:
            return None
        alone = np.array([row], dtype=np.int64)
        watch = self._watches.get(profile.scheduler_name)
        filtered = self._runtime.run_filters(profile, view, alone, nominated, watch=watch)
        return Placement(row, filtered.before.state) if len(filtered.feasible) else None
