"""Soft constraints: nodes whose domains hold few of the pods to be spread are preferred.

Assumptions: a domain counts all its nodes, feasible or not; small topologies should not be watered
down by large ones. Formula: the sum, over the constraints, of count times ln(domains + 2) plus
maxSkew - 1, rounded; `domains` are those of the feasible nodes. Scaled by 100 (max + min - score) /
max, so that few pods score high. Ties are left to the engine.

A node without the topology keys is ignored: it has the raw score `IGNORED` and ends with 0. The
built-in default constraints ignore no node: without one of their keys it is scored by the other.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from operator import add
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.plugin import MAX_SCORE
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import (
    FEW,
    Counts,
    Mask,
    RowsView,
    Scores,
    extremes,
)
from k8s_scheduler.core.framework.views.values import PodCounter
from k8s_scheduler.core.plugins.pod_topology_spread.constraints import HOSTNAME, Constraint
from k8s_scheduler.core.plugins.pod_topology_spread.domains import (
    Census,
    Included,
    counter_of,
    domain_count,
    mask_of_keys,
)
from k8s_scheduler.core.plugins.pod_topology_spread.inclusion import Inclusion, both

# No count is negative, so no other node has this raw score.
IGNORED: Final = -1


@dataclass(frozen=True, slots=True)
class SoftSpread:
    """One constraint, and where the pods it finds are counted."""

    constraint: Constraint
    weight: float
    # By domain; or, where each node is one, by node, and whatever the policies say.
    census: Census | PodCounter

    def counts(self, rows: RowsView) -> tuple[Counts, Mask | None]:
        """Return the count of each row's domain, and the rows with the key; None if all."""
        census, key = self.census, self.constraint.key
        found = census.near(rows) if isinstance(census, Census) else rows.count_here(census)
        return found, None if rows.is_label_on_all_nodes(key) else mask_of_keys([key], rows)

    def part(self, counts: Counts, has_key: Mask | None) -> npt.NDArray[np.float64]:
        """Return this constraint's part of the score."""
        part = np.multiply(counts, self.weight, dtype=np.float64)
        if self.constraint.max_skew != 1:
            part += float(self.constraint.max_skew - 1)
        if has_key is not None:
            part[~has_key] = 0.0
        return part

    def few(self, rows: RowsView) -> list[float]:
        """Return the same of few rows, which all have the key."""
        census = self.census
        if not isinstance(census, Census):
            found = rows.count_here(census)
        elif census.included is None:
            found = rows.count_near(census.counter, census.key)
        else:
            found = census.near(rows)
        weight, more = self.weight, float(self.constraint.max_skew - 1)
        return [count * weight + more for count in found.tolist()]


@dataclass(frozen=True, slots=True)
class SoftTerm:
    """What Score needs of a pod with soft constraints."""

    spreads: tuple[SoftSpread, ...]
    # Whether nodes without all keys are ignored.
    needs_all_keys: bool
    # Whether there is no such node.
    is_no_key_missing: bool

    @classmethod
    def of(
        cls,
        pod: PodView,
        constraints: tuple[Constraint, ...],
        feasible: RowsView,
        *,
        needs_all_keys: bool,
    ) -> "SoftTerm":
        """Weigh the constraints by the feasible nodes, and find out which nodes count."""
        nodes = _Nodes.of(pod, constraints, feasible, needs_all_keys=needs_all_keys)
        included = nodes.included(constraints, feasible)
        spreads = []
        for constraint in constraints:
            counter = counter_of(constraint, pod.namespace, feasible)
            if constraint.key == HOSTNAME:
                size = feasible.count_nodes(nodes.has_keys)
                spreads.append(SoftSpread(constraint, _weight(size), counter))
                continue
            size = nodes.domain_count(constraint, feasible)
            census = Census(constraint.key, counter, next(included))
            spreads.append(SoftSpread(constraint, _weight(size), census))
        return cls(tuple(spreads), needs_all_keys, not nodes.is_key_missing)

    def score(self, rows: RowsView) -> Scores:
        """Return the weighted counts of each row's domains."""
        if self.is_no_key_missing and len(rows) <= FEW:
            # The same as below, to the last bit.
            first, *others = self.spreads
            sums = first.few(rows)
            for spread in others:
                sums = list(map(add, sums, spread.few(rows)))
            return np.array([int(one + 0.5) for one in sums], dtype=np.int64)
        total = np.zeros(len(rows))
        has_keys: Mask | None = None
        for spread in self.spreads:
            counts, has_key = spread.counts(rows)
            total += spread.part(counts, has_key)
            has_keys = both(has_keys, has_key)
        # Halves away from zero, and nothing here is negative.
        total += 0.5
        scores = total.astype(np.int64)
        if self.needs_all_keys and has_keys is not None:
            scores[~has_keys] = IGNORED
        return scores


def scaled(scores: Scores) -> Scores:
    """Turn few into much, and ignored into nothing."""
    if len(scores) <= FEW:
        each = scores.tolist()
        lowest, highest = min(each), max(each)
        if lowest > IGNORED and highest > 0:
            top = highest + lowest
            found = [(top - score) * MAX_SCORE // highest for score in each]
            return np.array(found, dtype=np.int64)
    else:
        lowest, highest = extremes(scores)
    ignored = None if lowest > IGNORED else scores == IGNORED
    if ignored is not None:
        counted = scores[~ignored]
        lowest = int(np.minimum.reduce(counted)) if len(counted) else 0
    if highest <= 0:
        scaled_up = np.full(len(scores), MAX_SCORE)
    else:
        scaled_up = highest + lowest - scores
        scaled_up *= MAX_SCORE
        scaled_up //= highest
    if ignored is not None:
        scaled_up[ignored] = 0
    return scaled_up


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Which nodes take part."""

    inclusion: Inclusion
    keys: list[str]
    needs_all_keys: bool
    # Whether there is a node without one of the keys.
    is_key_missing: bool
    # The feasible nodes that take part; None if all do.
    has_keys: Mask | None

    @classmethod
    def of(
        cls,
        pod: PodView,
        constraints: tuple[Constraint, ...],
        feasible: RowsView,
        *,
        needs_all_keys: bool,
    ) -> "_Nodes":
        keys = [constraint.key for constraint in constraints]
        is_missing = not all(feasible.is_label_on_all_nodes(key) for key in keys)
        has_keys = mask_of_keys(keys, feasible) if is_missing and needs_all_keys else None
        return cls(Inclusion.of(pod), keys, needs_all_keys, is_missing, has_keys)

    def domain_count(self, constraint: Constraint, feasible: RowsView) -> int:
        ids = feasible.label(constraint.key)
        if self.needs_all_keys or not self.is_key_missing:
            return domain_count(ids, self.has_keys)
        has_key = ids >= 0
        found = domain_count(ids, has_key)
        if np.count_nonzero(has_key) == len(ids):
            return found
        # An absent label makes a domain too, the same as an empty one.
        empty = feasible.label_id("")
        return found + (empty < 0 or not np.count_nonzero(ids == empty))

    def included(
        self, constraints: tuple[Constraint, ...], feasible: RowsView
    ) -> Iterator[Included | None]:
        """Yield the nodes, feasible or not, whose pods count; None if simply all do.

        For each constraint but those by hostname, of which all nodes count. What is the same for
        several is looked up once: there may be thousands.
        """
        by_domain = tuple(c for c in constraints if c.key != HOSTNAME)
        if not by_domain:
            return
        everywhere = feasible.all_nodes
        has_keys: Mask | None = None
        if self.is_key_missing and self.needs_all_keys:
            has_keys = mask_of_keys(self.keys, everywhere)
        masks = self.inclusion.masks(by_domain, everywhere)
        for constraint, mask in zip(by_domain, masks, strict=True):
            yield self._included(constraint, mask, has_keys, everywhere)

    def _included(
        self,
        constraint: Constraint,
        mask: Mask | None,
        has_keys: Mask | None,
        everywhere: RowsView,
    ) -> Included | None:
        if self.needs_all_keys or not self.is_key_missing:
            mask = both(mask, has_keys)
            return mask if mask is None else Included.of(mask, everywhere.label(constraint.key))
        ids = everywhere.label(constraint.key)
        empty = everywhere.label_id("")
        if empty >= 0:
            ids = np.where(ids < 0, empty, ids)
        mask = ids >= 0 if mask is None else mask & (ids >= 0)
        return Included.of(mask, ids)


def _weight(size: int) -> float:
    return math.log(size + 2)
