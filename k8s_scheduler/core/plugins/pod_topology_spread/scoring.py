"""Soft constraints: nodes whose domains hold few of the pods to be spread are preferred.

Assumptions: a domain counts all its nodes, feasible or not; small topologies should not be watered
down by large ones. Formula: the sum, over the constraints, of count times ln(domains + 2) plus
maxSkew - 1, rounded; `domains` are those of the feasible nodes. Scaled by 100 (max + min - score) /
max, so that few pods score high. Ties are left to the engine.

A node without the topology keys is ignored: it has the raw score `IGNORED` and ends with 0. The
built-in default constraints ignore nobody; a node without one of their keys is scored by the other.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.plugin import MAX_SCORE
from k8s_scheduler.core.framework.pod_view import PodView
from k8s_scheduler.core.framework.views import Counts, Mask, RowsView, Scores
from k8s_scheduler.core.plugins.pod_topology_spread.constraints import HOSTNAME, Constraint
from k8s_scheduler.core.plugins.pod_topology_spread.domains import (
    Ids,
    PodCounts,
    complete,
    domain_count,
    sums_by_domain,
)
from k8s_scheduler.core.plugins.pod_topology_spread.inclusion import Inclusion, both

# No count is negative, so no other node has this raw score.
IGNORED: Final = -1


@dataclass(frozen=True, slots=True)
class SoftSpread:
    """One constraint and the pods it has found: by domain, or by row where each node is one."""

    constraint: Constraint
    weight: float
    counts: Counts

    def part(self, rows: RowsView) -> tuple[npt.NDArray[np.float64], Mask | None]:
        """Return this constraint's part of the score, and the rows with the key; None if all."""
        ids = rows.label(self.constraint.key)
        by_row = self.constraint.key == HOSTNAME
        found = rows.cut(self.counts) if by_row else self.counts[ids]
        part = np.multiply(found, self.weight, dtype=np.float64)
        part += float(self.constraint.max_skew - 1)
        has_key = complete([ids])
        if has_key is not None:
            part[~has_key] = 0.0
        return part, has_key


@dataclass(frozen=True, slots=True)
class SoftTerm:
    """What Score needs of a pod with soft constraints."""

    spreads: tuple[SoftSpread, ...]
    # Whether nodes without all keys are ignored.
    needs_all_keys: bool

    @classmethod
    def of(
        cls,
        pod: PodView,
        constraints: tuple[Constraint, ...],
        feasible: RowsView,
        *,
        needs_all_keys: bool,
    ) -> "SoftTerm":
        """Weigh the constraints by the feasible nodes, and count the pods on all nodes."""
        everywhere = feasible.all_nodes
        if len(everywhere) == len(feasible):
            everywhere = feasible
        here = _Columns.of(constraints, feasible, needs_all_keys=needs_all_keys)
        # By far the most often everybody is feasible.
        there = (
            here
            if everywhere is feasible
            else _Columns.of(constraints, everywhere, needs_all_keys=needs_all_keys)
        )
        counts = PodCounts(pod.namespace, everywhere)
        masks = Inclusion.of(pod).masks(constraints, everywhere)
        spreads = []
        for i, constraint in enumerate(constraints):
            found = counts.by_row(constraint)
            if constraint.key == HOSTNAME:
                # Each node by itself, and whatever the policies say.
                spreads.append(SoftSpread(constraint, _weight(here.counting), found))
                continue
            size = domain_count(here.ids[i], here.has_keys)
            by_domain = sums_by_domain(
                there.ids[i],
                everywhere.cut(found),
                both(there.has_keys, masks[i]),
                size=there.id_count,
            )
            spreads.append(SoftSpread(constraint, _weight(size), by_domain))
        return cls(tuple(spreads), needs_all_keys)

    def score(self, rows: RowsView) -> Scores:
        """Return the weighted counts of each row's domains."""
        total, has_keys = self.spreads[0].part(rows)
        for spread in self.spreads[1:]:
            part, has_key = spread.part(rows)
            total += part
            has_keys = both(has_keys, has_key)
        # Halves away from zero, and nothing here is negative.
        scores = (total + 0.5).astype(np.int64)
        if self.needs_all_keys and has_keys is not None:
            scores[~has_keys] = IGNORED
        return scores


def scaled(scores: Scores) -> Scores:
    """Turn few into much, and ignored into nothing."""
    lowest = int(scores.min(initial=0))
    ignored = None if lowest > IGNORED else scores == IGNORED
    counted = scores if ignored is None else scores[~ignored]
    highest = int(counted.max(initial=0))
    if highest == 0:
        found = np.full(len(scores), MAX_SCORE)
    else:
        left = highest + int(counted.min()) - scores
        # A quotient of at most 100 is exact enough in floating point to be cut.
        found = (MAX_SCORE * left / highest).astype(np.int64)
    if ignored is not None:
        found[ignored] = 0
    return found


@dataclass(frozen=True, slots=True)
class _Columns:
    """The domains of the nodes in a view, for each constraint, and the nodes that take part."""

    ids: tuple[Ids, ...]
    has_keys: Mask | None
    counting: int
    id_count: int

    @classmethod
    def of(
        cls, constraints: tuple[Constraint, ...], rows: RowsView, *, needs_all_keys: bool
    ) -> "_Columns":
        columns = [rows.label(c.key) for c in constraints]
        # Only now: reading a column may add values. One more for the domain of the absent label.
        id_count = rows.label_value_count + 1
        has_keys = complete(columns)
        if has_keys is None:
            return cls(tuple(columns), None, len(rows), id_count)
        if needs_all_keys:
            return cls(tuple(columns), has_keys, int(has_keys.sum()), id_count)
        # An absent label makes a domain too, the same as an empty one.
        empty = rows.label_id("")
        absent = empty if empty >= 0 else id_count - 1
        return cls(
            tuple(np.where(ids < 0, absent, ids) for ids in columns), None, len(rows), id_count
        )


def _weight(size: int) -> float:
    return math.log(size + 2)
