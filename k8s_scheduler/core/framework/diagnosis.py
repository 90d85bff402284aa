"""Why no node fits, in kube-scheduler's words.

`0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable.` Each reason is
counted once per node that has it, so counts may add up to more than the nodes there are; the
"count reason" strings are sorted as strings, as upstream sorts them. A pod that PreFilter rejects
has no counts: what was said is said of all nodes.

A pod may be short of any number of things. Its text is kube-scheduler's as long as it has no more
than 32 KiB; of a longer one, the end is counted instead: `... and 1234 more`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from k8s_scheduler.core.framework.evaluation.runtime import Filtered
from k8s_scheduler.core.framework.reasons import Verdict, VerdictTable

NO_NODES = "no nodes available to schedule pods"
# Of a list of reasons. kube-scheduler has no limit; etcd takes objects of 1.5 MiB, pods included.
MESSAGE_BYTES: Final = 32 * 1024


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What stood in the way of a pod, over all nodes."""

    node_count: int
    verdicts: tuple[tuple[Verdict, int], ...]
    pre_filter: Verdict | None = None

    @property
    def rejectors(self) -> tuple[str, ...]:
        """Return the plugins that rejected at least one node, sorted."""
        return tuple(sorted({name for verdict, _ in self.verdicts for name in verdict.blamed}))

    def message(self) -> str:
        if self.node_count == 0:
            return NO_NODES
        if self.pre_filter is not None:
            said = _listed([reason.text for reason in self.pre_filter.reasons])
            return f"0/{self.node_count} nodes are available: {said}."
        counts: dict[str, int] = {}
        for verdict, nodes in self.verdicts:
            for reason in verdict.reasons:
                counts[reason.text] = counts.get(reason.text, 0) + nodes
        return f"0/{self.node_count} nodes are available: {_histogram(counts.items())}."


def diagnose(filtered: Filtered, verdicts: VerdictTable) -> Diagnosis:
    """Count the verdicts on all nodes; none of them passed."""
    return Diagnosis(
        node_count=len(filtered.codes),
        verdicts=tuple((verdicts[code], count) for code, count in filtered.counts()),
        pre_filter=filtered.pre_filter,
    )


def _histogram(counts: Iterable[tuple[str, int]]) -> str:
    return _listed(sorted(f"{count} {text}" for text, count in counts))


def _listed(texts: list[str]) -> str:
    """Return all texts, or as many as there is room for and how many more there are."""
    found = ", ".join(texts)
    if 4 * len(found) <= MESSAGE_BYTES or len(found.encode()) <= MESSAGE_BYTES:
        return found
    room = MESSAGE_BYTES
    for number, text in enumerate(texts):
        room -= len(text.encode()) + len(", ")
        if room < 0:
            shown = texts[: max(number, 1)]
            return f"{', '.join(shown)}, ... and {len(texts) - len(shown)} more"
    return found
