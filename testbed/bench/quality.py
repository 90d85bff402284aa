"""How good a placement is: whether it is allowed, how even it is, and what it scores.

Read from what was listed after a run, and from the order of the bindings. That is the order in
which the API server got them; a scheduler that binds several pods at once may have decided in
another one.
Required (anti-)affinity, room and volumes come out the same in either. A skew need not: one that is
too large when a pod is bound is counted on its own, and is a violation only if the pods end up
spread as no order allows.
"""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from testbed.bench.constraints import (
    SKEW,
    SPREAD,
    Board,
    claims_of,
    misplaced_volumes,
    node_of,
    overfilled,
)
from testbed.bench.replay import Scores, replay
from testbed.bench.scenarios import Scenario
from testbed.client import Object
from testbed.errors import TestbedError
from testbed.workload import ZONE_LABEL

SAMPLE = 500
_EXAMPLES = 5
OVERFILLED = "room"


@dataclass(frozen=True, slots=True)
class Quality:
    """What there is to say about a placement."""

    # Bindings that were looked at.
    pods: int
    # By rule: how many pods, for skew groups of pods and for room nodes, break it.
    violations: dict[str, int]
    examples: tuple[str, ...]
    # Pods bound when the skew was too large, which the order of the writes may explain.
    unordered_skews: int
    # Of all pods that are somewhere, over nodes and zones that can have any.
    deviation_per_node: float
    deviation_per_zone: float
    # Of a sample; see `replay.Scores`. Not a number where nothing was judged.
    judged: int
    refused: int
    mean_score: float
    mean_best_score: float
    best_share: float

    @property
    def is_sound(self) -> bool:
        """Whether every pod is where it may be."""
        return not self.violations


def inspect(
    scenario: Scenario,
    nodes: Sequence[Object],
    pods: Sequence[Object],
    order: Sequence[tuple[str, str]],
    *,
    objects: Mapping[str, Sequence[Object]] | None = None,
    sample: int = SAMPLE,
) -> Quality:
    """Look at where pods are: `order` has the names of pods and their nodes as they were bound.

    Pods that are not in it were in place before. `objects` are listed after the run, by kind; what
    is not among them is as the scenario made it. Claims have to be: only they tell who got what.
    """
    # The API server leaves the kind out of the items of a list.
    nodes, pods = _of_kind("Node", nodes), _of_kind("Pod", pods)
    start, placed = _sorted_out(scenario, pods, order)
    if objects is None and any(claims_of(pod) for pod in placed):
        raise ValueError(
            "pods have claims: pass objects with what is listed after the run, as "
            "{'PersistentVolume': [...], 'PersistentVolumeClaim': [...]}"
        )
    known = _merged(scenario.make_objects(len(nodes), len(order)), objects or {})
    found: list[tuple[str, str]] = []
    unordered = 0
    board = Board(nodes, [*start, *placed])
    for pod in start:
        board.put(pod, node_of(pod))
    for pod in placed:
        for violation in board.broken(pod, node_of(pod)):
            if violation.rule == SKEW:
                unordered += 1
            else:
                found.append((violation.rule, str(violation)))
        board.put(pod, node_of(pod))
    found += [(SPREAD, text) for text in board.uneven()]
    found += [(OVERFILLED, text) for text in _rooms(nodes, pods)]
    found += [(v.rule, str(v)) for v in misplaced_volumes(placed, nodes, known)]
    per_node, per_zone = _deviations(nodes, [*start, *placed])
    scores = (
        # Who made room for whom, and when, is nowhere listed.
        Scores() if scenario.evicts else replay([*nodes, *start], known, placed, sample=sample)
    )
    return Quality(
        pods=len(placed),
        violations=dict(Counter(rule for rule, _ in found)),
        examples=tuple(text for _, text in found[:_EXAMPLES]),
        unordered_skews=unordered,
        deviation_per_node=round(per_node, 3),
        deviation_per_zone=round(per_zone, 3),
        judged=scores.judged,
        refused=scores.refused,
        mean_score=round(scores.mean, 2),
        mean_best_score=round(scores.mean_best, 2),
        best_share=round(scores.best_share, 4),
    )


def placements(
    order: Sequence[str], pods: Sequence[Object], *, may_be_gone: bool
) -> list[tuple[str, str]]:
    """Return pods and their nodes in the order of their Bindings; TestbedError if one has none.

    By the log each was bound: one that is on no node shows that the log was read wrongly. Where
    pods have to make room, one `may_be_gone`.
    """
    nodes = {pod["metadata"]["name"]: node_of(pod) for pod in pods}
    if may_be_gone:
        order = [name for name in order if name in nodes]
    if lost := [name for name in order if not nodes.get(name)]:
        some = ", ".join(lost[:_EXAMPLES])
        raise TestbedError(f"{len(lost)} pods were bound by the log and are on no node: {some}")
    return [(name, nodes[name]) for name in order]


def _sorted_out(
    scenario: Scenario, pods: Sequence[Object], order: Sequence[tuple[str, str]]
) -> tuple[list[Object], list[Object]]:
    """Return the pods that were in place, and those that were placed, in their order."""
    listed = {pod["metadata"]["name"]: pod for pod in pods}
    placed: dict[str, Object] = {}
    for name, node in order:
        pod = listed.get(name)
        if pod is None:
            if not scenario.evicts:
                raise ValueError(f"pod {name} was bound to {node} and is not listed")
            continue
        if node_of(pod) != node:
            raise ValueError(
                f"pod {name} was bound to {node} and is listed on {node_of(pod) or 'no node'}"
            )
        placed[name] = pod
    start = [pod for name, pod in listed.items() if node_of(pod) and name not in placed]
    return start, list(placed.values())


def _of_kind(kind: str, items: Sequence[Object]) -> list[Object]:
    return [{**item, "kind": kind} for item in items]


def _merged(made: Sequence[Object], listed: Mapping[str, Sequence[Object]]) -> list[Object]:
    """Return what was made, each as it was listed if it was."""
    found = {(item["kind"], item["metadata"]["name"]): item for item in made}
    for kind, items in listed.items():
        found |= {(kind, item["metadata"]["name"]): item for item in _of_kind(kind, items)}
    return list(found.values())


def _rooms(nodes: Sequence[Object], pods: Sequence[Object]) -> list[str]:
    """Return a line for each node with too much on it."""
    by_node: dict[str, str] = {}
    for text in overfilled(nodes, pods):
        by_node.setdefault(text.partition(":")[0], text)
    return list(by_node.values())


def _deviations(nodes: Sequence[Object], pods: Sequence[Object]) -> tuple[float, float]:
    """Return the standard deviations of pods per node and per zone."""
    usable = [node for node in nodes if node["status"]["allocatable"].get("pods", "0") != "0"]
    counts = Counter(node_of(pod) for pod in pods)
    zones: Counter[str] = Counter()
    for node in usable:
        zones[node["metadata"]["labels"].get(ZONE_LABEL, "")] += counts[node["metadata"]["name"]]
    per_node = [counts[node["metadata"]["name"]] for node in usable]
    return statistics.pstdev(per_node), statistics.pstdev(zones.values())
