"""A decision laid open: every node's verdict and every plugin's score, with nothing changed.

The same runtime that decides for the daemon, asked for all it knows. Used where a decision is to
be shown or compared instead of carried out.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.diagnosis import Diagnosis, diagnose
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.reasons import Verdict, VerdictTable
from k8s_scheduler.core.framework.runtime import Runtime
from k8s_scheduler.core.framework.views import PodView
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.node_table import NodeTable


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the plugins say about one pod on all nodes."""

    pre_filter: Verdict | None
    rejected: Mapping[NodeName, Verdict]
    feasible: tuple[NodeName, ...]
    scores: Mapping[NodeName, Mapping[str, int]]
    totals: Mapping[NodeName, int]
    diagnosis: Diagnosis | None


class Judge:
    """Judges pods against one node table."""

    def __init__(self, table: NodeTable, runtime: Runtime, verdicts: VerdictTable) -> None:
        self._table = table
        self._runtime = runtime
        self._verdicts = verdicts

    def judge(self, profile: Profile, pod: Pod) -> Judgement:
        """Return everything about the pod. Raises PluginError and QuantityError."""
        view = PodView(pod)
        rows = self._table.present_rows()
        filtered = self._runtime.run_filters(profile, view, rows)
        names = {int(row): self._table.name_of(NodeRow(int(row))) for row in rows}
        rejected = {
            names[int(row)]: self._verdicts[int(code)]
            for row, code in zip(rows, filtered.codes, strict=True)
            if code
        }
        feasible = tuple(names[int(row)] for row in filtered.feasible)
        if not feasible:
            diagnosis = diagnose(filtered.codes, self._verdicts, pre_filter=filtered.pre_filter)
            return Judgement(filtered.pre_filter, rejected, (), {}, {}, diagnosis)
        scored = self._runtime.run_scores(profile, view, filtered.feasible)
        return Judgement(
            pre_filter=None,
            rejected=rejected,
            feasible=feasible,
            scores={
                name: {plugin: int(column[i]) for plugin, column in scored.by_plugin.items()}
                for i, name in enumerate(feasible)
            },
            totals={name: int(scored.totals[i]) for i, name in enumerate(feasible)},
            diagnosis=None,
        )
