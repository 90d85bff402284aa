"""One decision: judge all nodes, score those that pass, pick one.

Ties: among rows with the highest total, the first at or after `crc32(uid, attempt)` modulo the
table's length. Fair over pods, and the same whenever the same decision is replayed.
"""

import zlib
from dataclasses import dataclass

import numpy as np

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.diagnosis import Diagnosis, diagnose
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.runtime import Runtime
from k8s_scheduler.core.framework.views import PodView
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.node_table import NodeTable, Rows


@dataclass(frozen=True, slots=True)
class Placement:
    """The node that was chosen."""

    row: NodeRow


class Cycle:
    """Decides for one pod at a time; changes nothing."""

    def __init__(self, table: NodeTable, runtime: Runtime, verdicts: VerdictTable) -> None:
        self._table = table
        self._runtime = runtime
        self._verdicts = verdicts

    def decide(self, profile: Profile, queued: QueuedPod) -> Placement | Diagnosis:
        """Return where the pod goes, or why nowhere. Raises PluginError."""
        rows = self._table.present_rows()
        if not len(rows):
            return Diagnosis(node_count=0, verdicts=())
        pod = PodView(queued.pod)
        filtered = self._runtime.run_filters(profile, pod, rows)
        feasible = filtered.feasible
        if not len(feasible):
            return diagnose(filtered.codes, self._verdicts, pre_filter=filtered.pre_filter)
        if len(feasible) == 1:
            return Placement(NodeRow(int(feasible[0])))
        totals = self._runtime.run_scores(profile, pod, feasible).totals
        best = feasible[totals == totals.max()]
        row = _pick(best, start=_seed(queued.pod, queued.attempts) % self._table.row_count)
        return Placement(row)


def _seed(pod: Pod, attempt: int) -> int:
    return zlib.crc32(f"{pod.metadata.uid}/{attempt}".encode())


def _pick(rows: Rows, *, start: int) -> NodeRow:
    """Return the first of the ascending rows at or after `start`, wrapping around."""
    position = int(np.searchsorted(rows, start))
    return NodeRow(int(rows[position % len(rows)]))
