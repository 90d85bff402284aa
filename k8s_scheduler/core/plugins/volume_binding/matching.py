"""Which volumes a pod would get on each node, and why some nodes can't give it any.

`find` is asked about many rows, to filter and to score, or about one: what `volumes_on` tells of a
single row is what gets bound and provisioned there.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from k8s_scheduler.api.storage.objects import (
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
)
from k8s_scheduler.core.framework.helpers.node_selection import match_reach
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.framework.views.offers import NONE, Choices, Slots
from k8s_scheduler.core.framework.views.rows_view import Mask, RowsView
from k8s_scheduler.core.plugins.volume_binding.term import (
    BindingTerm,
    ClaimMatching,
    Provisioning,
)


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found on each row.

    `matched` has a column for each matching, the slot of its volume; `provisioned` for each
    provisioning the rows that it is needed on, and `capacity` the slot of its capacity there, or
    None where no driver keeps account. The rest is what is wrong, and None where nothing is: a
    bound volume out of reach or missing, a waiting claim without volume, or without room for one.
    """

    matched: tuple[Slots, ...]
    provisioned: tuple[Mask, ...]
    capacity: tuple[Slots | None, ...]
    out_of_reach: Mask | None
    no_volume: Mask | None
    no_space: Mask | None
    missing: Mask | None


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """What is done for a pod's waiting claims on its node."""

    bindings: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...]
    provisions: tuple[tuple[PersistentVolumeClaim, CsiStorageCapacity | None], ...]


def find(term: BindingTerm, rows: RowsView) -> Findings:
    """Return what is found on the rows in view; StatusError where kube-scheduler fails."""
    out_of_reach, missing = _check_bound(term, rows)
    elsewhere = None
    for name in term.chosen_nodes:
        elsewhere = _either(elsewhere, ~rows.mask_of(name))
    if len(rows) and (elsewhere is None or not elsewhere.all()):
        for matching in term.matchings:
            if matching.error:
                raise StatusError(matching.error)
    matched = match(term, rows)
    here = [np.ones(len(rows), dtype=np.bool_)] * len(term.chosen_nodes)
    needed = here + [slots == NONE for slots in matched]
    no_volume, no_space = elsewhere, None
    capacity = []
    for provisioning, wanted in zip(term.provisionings, needed, strict=True):
        open_rows = _but(_but(wanted, no_volume), no_space)
        impossible, insufficient, slots = _provision(provisioning, open_rows, rows)
        no_volume = _either(no_volume, impossible)
        no_space = _either(no_space, insufficient)
        capacity.append(slots)
    return Findings(
        matched, tuple(needed), tuple(capacity), out_of_reach, no_volume, no_space, missing
    )


def volumes_on(term: BindingTerm, row: RowsView) -> PodVolumes:
    """Return what is to be bound and provisioned on the one row in view, which has passed."""
    found = find(term, row)
    bindings = [
        (matching.claim, matching.volumes.offer(int(slots[0])).thing)
        for matching, slots in zip(term.matchings, found.matched, strict=True)
        if matching.volumes is not None and slots[0] != NONE
    ]
    provisions = [
        (provisioning.claim, _capacity_at(provisioning, slots))
        for provisioning, needed, slots in zip(
            term.provisionings, found.provisioned, found.capacity, strict=True
        )
        if needed[0]
    ]
    return PodVolumes(tuple(bindings), tuple(provisions))


def _capacity_at(provisioning: Provisioning, slots: Slots | None) -> CsiStorageCapacity | None:
    if slots is None or provisioning.capacity is None or provisioning.capacity.offers is None:
        return None
    found: CsiStorageCapacity = provisioning.capacity.offers.offer(int(slots[0])).thing
    return found


# Masks, where None is nowhere


def _either(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other


def _but(mask: Mask, without: Mask | None) -> Mask:
    return mask if without is None else mask & ~without


# Bound claims


def _check_bound(term: BindingTerm, rows: RowsView) -> tuple[Mask | None, Mask | None]:
    """Return where a bound volume is out of reach, and where one is missing; the first decides."""
    out_of_reach: Mask | None = None
    for volume in term.bound:
        if volume is None:
            return out_of_reach, _but(np.ones(len(rows), dtype=np.bool_), out_of_reach)
        within = match_reach(volume.reach, rows)
        if (handed_over := volume.handed_over) is not None and term.csi_nodes is not None:
            migrated = term.csi_nodes.where(rows, handed_over.on)
            if handed_over.reach is not None:
                within = np.where(migrated, match_reach(handed_over.reach, rows), within)
            elif _but(migrated, out_of_reach).any():
                raise StatusError(handed_over.error)
        out_of_reach = _either(out_of_reach, ~within)
    return out_of_reach, None


# Waiting claims


def match(term: BindingTerm, rows: RowsView) -> tuple[Slots, ...]:
    """Return the slot of each claim's volume on each row; what one has the others can't have."""
    matched: list[Slots] = []
    for position, matching in enumerate(term.matchings):
        taken = [
            slots
            for other, slots in zip(term.matchings[:position], matched, strict=True)
            if other.volumes is matching.volumes
        ]
        matched.append(_first(matching, rows, taken))
    return tuple(matched)


def _first(matching: ClaimMatching, rows: RowsView, taken: list[Slots]) -> Slots:
    if matching.choices is None:
        return np.full(len(rows), NONE)
    found = _best(matching.choices, rows, taken)
    # A volume that is kept for the claim decides, also where it is out of reach; the first by
    # name goes before the others, so it has its say last.
    for slot, reach in reversed(matching.kept):
        free = np.ones(len(rows), dtype=np.bool_)
        for slots in taken:
            free &= slots != slot
        found = np.where(free, np.where(match_reach(reach, rows), slot, NONE), found)
    return found


def _best(choices: Choices, rows: RowsView, taken: Iterable[Slots] = ()) -> Slots:
    """Return the slot of the best offer on each row that is not among the row's taken ones."""
    best: Slots | None = None
    for key, levels in choices.tables:
        ids = rows.label(key)
        for table in levels:
            best = _better(best, table[ids], taken, choices.rank)
    for reach, slots in choices.selected:
        within = match_reach(reach, rows)
        for slot in slots:
            best = _better(best, np.where(within, slot, NONE), taken, choices.rank)
    return np.full(len(rows), NONE) if best is None else best


def _better(best: Slots | None, offered: Slots, taken: Iterable[Slots], rank: Slots) -> Slots:
    for others in taken:
        offered = np.where(offered == others, NONE, offered)
    return offered if best is None else np.where(rank[offered] < rank[best], offered, best)


def _provision(
    provisioning: Provisioning, wanted: Mask, rows: RowsView
) -> tuple[Mask | None, Mask | None, Slots | None]:
    """Return where a volume can't be made, where there is no room for it, and the capacities."""
    if not wanted.any():
        return None, None, None
    if not provisioning.supported:
        return wanted, None, None
    allowed = match_reach(provisioning.reach, rows)
    capacity = provisioning.capacity
    if capacity is None:
        return wanted & ~allowed, None, None
    slots = np.full(len(rows), NONE)
    if capacity.choices is not None:
        slots = _best(capacity.choices, rows)
    return wanted & ~allowed, wanted & allowed & (slots == NONE), slots
