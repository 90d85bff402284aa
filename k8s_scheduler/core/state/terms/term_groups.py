"""What held terms are added up by: a purpose and a topology key.

A group whose key no node has adds up nothing, and there may be thousands of these: pods may name
any key. So it is known of each whether its key has been seen on a node.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.state.terms.picked_terms import Group, Purpose
from k8s_scheduler.lib.hollow import compact
from k8s_scheduler.lib.seats import Seats

Numbers = npt.NDArray[np.int64]
_FIRST_CAPACITY: Final = 16


class TermGroups:
    """Small ids of groups; an id is used again once its last term is gone."""

    def __init__(self, has_key: Callable[[str], bool]) -> None:
        self._has_key = has_key
        self._ids: dict[Group, int] = {}
        # By id; None where there is no group.
        self._groups: list[Group | None] = []
        self._uses: list[int] = []
        self._seats = Seats()
        self._is_seen = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)

    def acquire(self, group: Group) -> int:
        found = self._ids.get(group)
        if found is not None:
            self._uses[found] += 1
            return found
        found = self._seats.take()
        if found < len(self._groups):
            self._groups[found], self._uses[found] = group, 1
        else:
            self._groups.append(group)
            self._uses.append(1)
            if found >= len(self._is_seen):
                self._is_seen = np.append(self._is_seen, np.zeros_like(self._is_seen))
        self._ids[group] = found
        self._is_seen[found] = self._has_key(group[1])
        return found

    def release(self, group_id: int) -> None:
        self._uses[group_id] -= 1
        group = self._groups[group_id]
        if self._uses[group_id] or group is None:
            return
        del self._ids[group]
        self._ids = compact(self._ids)
        # A pod names the key, and it may be long.
        self._groups[group_id] = None
        self._seats.leave(group_id)
        size = len(self._seats)
        del self._groups[size:], self._uses[size:]

    def id_of(self, group: Group) -> int | None:
        return self._ids.get(group)

    def meet_key(self, key: str) -> bool:
        """Take note that some node has a key; return whether that concerns any group."""
        found = [self._ids.get((purpose, key)) for purpose in Purpose]
        concerned = [group_id for group_id in found if group_id is not None]
        self._is_seen[concerned] = True
        return bool(concerned)

    def seen_among(self, group_ids: Numbers) -> list[Group]:
        seen = group_ids[self._is_seen.take(group_ids)]
        found = np.flatnonzero(np.bincount(seen)).tolist()
        groups = [self._groups[group_id] for group_id in found]
        return [group for group in groups if group is not None]
