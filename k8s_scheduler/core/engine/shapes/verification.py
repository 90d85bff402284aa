"""Looks, on a sample of decisions, whether what is kept is what would be found from scratch.

A difference is a bug: a read that was not taken down, or a change that was not noted. It is logged
with everything that is needed to look into it, counted, the shape is made anew, and the pod is
decided on from scratch.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.engine.shapes.shape_cache import Known
from k8s_scheduler.core.framework.evaluation.runtime import Nominated, Runtime
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.messages.outgoing import Log, Severity
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.protocols import PlacedPods
from k8s_scheduler.core.state.rows import NodeRow

_SEEDS: Final = 2**32
# Nodes that are shown in full; there may be thousands of them.
_SHOWN: Final = 3
_NOBODY: Final[Nominated] = {}


@dataclass(frozen=True, slots=True)
class StaleNode:
    """What is kept of one node, and what would be found from scratch."""

    row: NodeRow
    kept: str
    fresh: str


class Verifier:
    """Compares kept evaluations with fresh ones."""

    def __init__(
        self,
        state: PlacedPods,
        runtime: Runtime,
        verdicts: VerdictTable,
        *,
        rate: float,
        out: Outbox,
        count: Callable[[bool], None],
    ) -> None:
        """Look at a share of `rate`; `count` is told of each look whether it found the same."""
        self._state = state
        self._runtime = runtime
        self._verdicts = verdicts
        self._threshold = int(rate * _SEEDS)
        self._out = out
        self._count = count

    def approves(
        self,
        profile: Profile,
        queued: QueuedPod,
        kept: Known,
        nominated: Nominated = _NOBODY,
    ) -> bool:
        """Return whether a kept evaluation may decide: it is not looked at, or it is right.

        It was caught up with the same pods `nominated`.
        """
        if queued.seed >= self._threshold:
            return True
        found = next(self.differences(profile, queued.view, kept, nominated), None)
        self._count(found is None)
        if found is None:
            return True
        self._out.remark(self._log(profile, queued, kept, nominated))
        return False

    def differences(
        self, profile: Profile, view: PodView, kept: Known, nominated: Nominated = _NOBODY
    ) -> Iterator[StaleNode]:
        """Yield the nodes of which something else is kept than would be found from scratch."""
        rows = self._state.nodes.present_rows()
        epoch = self._verdicts.epoch
        fresh = self._runtime.run_filters(profile, view, rows, nominated)
        if self._verdicts.epoch != epoch:
            # The codes of what is kept mean nothing any more; it is forgotten anyway.
            return
        known = kept.filtered()
        for row, old, new in zip(rows.tolist(), known.codes, fresh.codes, strict=True):
            if old != new:
                yield StaleNode(NodeRow(row), self._said(int(old)), self._said(int(new)))
        if len(fresh.feasible) and (known.codes == fresh.codes).all():
            yield from self._other_scores(profile, view, kept, fresh.feasible)

    def _other_scores(
        self, profile: Profile, view: PodView, kept: Known, feasible: Any
    ) -> Iterator[StaleNode]:
        fresh = self._runtime.run_scores(profile, view, feasible)
        known = kept.scored(profile, feasible)
        totals = kept.totals(profile).take(feasible)
        for position, row in enumerate(feasible.tolist()):
            old = {plugin: int(column[position]) for plugin, column in known.by_plugin.items()}
            new = {plugin: int(column[position]) for plugin, column in fresh.by_plugin.items()}
            sums = int(totals[position]), int(fresh.totals[position])
            if old != new or sums[0] != sums[1]:
                yield StaleNode(NodeRow(row), f"{sums[0]} {old}", f"{sums[1]} {new}")

    def _said(self, code: int) -> str:
        return "fits" if not code else str(self._verdicts[code])

    def _log(self, profile: Profile, queued: QueuedPod, kept: Known, nominated: Nominated) -> Log:
        found = list(self.differences(profile, queued.view, kept, nominated))
        shown = [self._shown(difference) for difference in found[:_SHOWN]]
        return Log(
            Severity.ERROR,
            "a kept evaluation was stale: please report this",
            {
                "profile": profile.scheduler_name,
                "pod": msgspec.json.encode(queued.pod).decode(),
                "nodes": len(found),
                "differences": msgspec.json.encode(shown).decode(),
                "as_of": kept.cursor,
                "promised_nodes": len(nominated),
                "recipe": "with --record the input up to here replays it",
            },
        )

    def _shown(self, difference: StaleNode) -> dict[str, Any]:
        """Return a node with everything on it, and what is said of it."""
        return {
            "node": self._state.nodes.node_at(difference.row),
            "pods": [placed.pod for placed in self._state.pods_on(difference.row)],
            "kept": difference.kept,
            "fresh": difference.fresh,
        }
