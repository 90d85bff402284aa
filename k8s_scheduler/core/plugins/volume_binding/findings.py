"""Which volumes a pod would get on each node, and why some nodes can't give it any.

`find` is asked about many rows, to filter and to score, or about one: what `volumes_on` tells of a
single row is what gets bound and provisioned there.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.storage.objects import (
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
)
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.framework.views.rows_view import Mask, RowsView
from k8s_scheduler.core.plugins.volume_binding.order import Ranks
from k8s_scheduler.core.plugins.volume_binding.ranking import NONE
from k8s_scheduler.core.plugins.volume_binding.term import (
    BindingTerm,
    Matching,
    Provisioning,
)


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found on each row.

    `matched` has a column for each matching, the rank of its volume; `provisioned` for each
    provisioning the rows that it is needed on, and `capacity` the rank of its capacity there (NONE
    where nobody keeps account). The rest is what is wrong: a bound volume out of reach or missing,
    a waiting claim without volume, or without room to make one.
    """

    matched: tuple[Ranks, ...]
    provisioned: tuple[Mask, ...]
    capacity: tuple[Ranks, ...]
    out_of_reach: Mask
    no_volume: Mask
    no_space: Mask
    missing: Mask


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """What is done for a pod's waiting claims on its node."""

    bindings: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...]
    provisions: tuple[tuple[PersistentVolumeClaim, CsiStorageCapacity | None], ...]


def find(term: BindingTerm, rows: RowsView) -> Findings:
    """Return what is found on the rows in view; StatusError where kube-scheduler fails."""
    out_of_reach, missing = _check_bound(term, rows)
    elsewhere = np.zeros(len(rows), dtype=np.bool_)
    for name in term.chosen_nodes:
        elsewhere |= ~rows.mask_of(name)
    matched = _match(term, rows, ~elsewhere)
    here = np.ones(len(rows), dtype=np.bool_)
    needed = [here] * len(term.chosen_nodes) + [ranks == NONE for ranks in matched]
    no_volume = elsewhere.copy()
    no_space = np.zeros(len(rows), dtype=np.bool_)
    capacity = []
    for provisioning, wanted in zip(term.provisionings, needed, strict=True):
        open_rows = wanted & ~no_volume & ~no_space
        impossible, insufficient, ranks = _provision(provisioning, open_rows, rows)
        no_volume |= impossible
        no_space |= insufficient
        capacity.append(ranks)
    return Findings(
        matched, tuple(needed), tuple(capacity), out_of_reach, no_volume, no_space, missing
    )


def volumes_on(term: BindingTerm, row: RowsView) -> PodVolumes:
    """Return what is to be bound and provisioned on the one row in view, which has passed."""
    found = find(term, row)
    bindings = [
        (matching.claim, matching.stock.volume(int(ranks[0])))
        for matching, ranks in zip(term.matchings, found.matched, strict=True)
        if matching.stock is not None and ranks[0] != NONE
    ]
    provisions = [
        (provisioning.claim, _capacity_at(provisioning, int(ranks[0])))
        for provisioning, needed, ranks in zip(
            term.provisionings, found.provisioned, found.capacity, strict=True
        )
        if needed[0]
    ]
    return PodVolumes(tuple(bindings), tuple(provisions))


def _capacity_at(provisioning: Provisioning, rank: int) -> CsiStorageCapacity | None:
    if provisioning.capacity is None or provisioning.capacity.stock is None:
        return None
    return provisioning.capacity.stock.capacity(rank)


# Bound claims


def _check_bound(term: BindingTerm, rows: RowsView) -> tuple[Mask, Mask]:
    """Return where a bound volume is out of reach, and where one is missing; the first decides."""
    out_of_reach = np.zeros(len(rows), dtype=np.bool_)
    missing = np.zeros(len(rows), dtype=np.bool_)
    for volume in term.bound:
        if volume is None:
            missing = ~out_of_reach
            break
        within = volume.reach.mask(rows)
        if (handed_over := volume.handed_over) is not None and term.csi_nodes is not None:
            migrated = term.csi_nodes.where(rows, handed_over.on)
            if handed_over.reach is not None:
                within = np.where(migrated, handed_over.reach.mask(rows), within)
            elif (migrated & ~out_of_reach).any():
                raise StatusError(handed_over.error)
        out_of_reach |= ~within
    return out_of_reach, missing


# Waiting claims


def _match(term: BindingTerm, rows: RowsView, asked: Mask) -> tuple[Ranks, ...]:
    """Return the rank of each claim's volume on each row; what one has the others can't have."""
    matched: list[Ranks] = []
    for position, matching in enumerate(term.matchings):
        if matching.error and asked.any():
            raise StatusError(matching.error)
        taken = [
            ranks
            for other, ranks in zip(term.matchings[:position], matched, strict=True)
            if other.stock is matching.stock
        ]
        matched.append(_first(matching, rows, taken))
    return tuple(matched)


def _first(matching: Matching, rows: RowsView, taken: list[Ranks]) -> Ranks:
    if matching.stock is None or matching.choices is None:
        return np.full(len(rows), NONE)
    found = matching.choices.first(rows, taken)
    # A volume that is kept for the claim decides, also where it is out of reach; the first by
    # name goes before the others, so it has its say last.
    for rank, reach in reversed(matching.kept):
        free = np.ones(len(rows), dtype=np.bool_)
        for ranks in taken:
            free &= ranks != rank
        found = np.where(free, np.where(reach.mask(rows), rank, NONE), found)
    return found


def _provision(
    provisioning: Provisioning, wanted: Mask, rows: RowsView
) -> tuple[Mask, Mask, npt.NDArray[np.int64]]:
    """Return where a volume can't be made, where there is no room for it, and the capacities."""
    nothing = np.full(len(rows), NONE)
    nowhere = np.zeros(len(rows), dtype=np.bool_)
    if not wanted.any():
        return nowhere, nowhere, nothing
    if not provisioning.supported:
        return wanted, nowhere, nothing
    allowed = provisioning.reach.mask(rows)
    capacity = provisioning.capacity
    if capacity is None:
        return wanted & ~allowed, nowhere, nothing
    ranks = nothing if capacity.choices is None else capacity.choices.first(rows)
    return wanted & ~allowed, wanted & allowed & (ranks == NONE), ranks
