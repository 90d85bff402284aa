"""The distinct (namespace, labels) of placed pods, as columns.

Replicas share their labels, so there are far fewer label sets than pods, and a selector is
answered once per set instead of once per pod: a comparison of whole columns. Ids are used again
once their last pod is gone.

What only pods had that are gone is not kept: every Job may come with labels and a namespace of its
own, and a daemon sees many of them.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.meta import Labels
from k8s_scheduler.api.selectors.labels import DOES_NOT_EXIST, EXISTS, IN, Requirement, Requirements
from k8s_scheduler.core.state.columns import Columns
from k8s_scheduler.core.state.counts.questions import SelectedPods, WeighedPods
from k8s_scheduler.core.state.interning import Interner
from k8s_scheduler.core.state.nodes.labels import LabelColumns
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.lib.hollow import compact
from k8s_scheduler.lib.seats import Seats

Mask = npt.NDArray[np.bool_]
# Told of a set with its first pod: (id, namespace, labels).
Born: TypeAlias = Callable[[int, str, Labels], None]
# Told of a set without pods.
Gone: TypeAlias = Callable[[int], None]
# The namespace, and the labels in no order.
_Key: TypeAlias = tuple[str, frozenset[tuple[str, str]]]
_NAMESPACE = "namespace"
_NO_LABELS: Labels = {}


class LabelSets:
    """Gives each distinct namespace and labels an id, counts its pods, and matches selectors."""

    def __init__(self) -> None:
        self._columns = Columns()
        self._columns.add(_NAMESPACE, np.int64, fill=-1)
        self._labels = LabelColumns(self._columns, forgets=True)
        self._ids: dict[_Key, int] = {}
        self._keys: list[_Key | None] = []
        self._uses: list[int] = []
        self._seats = Seats()
        # Used once by every set.
        self._namespaces = Interner(first="")
        self._born: Born | None = None
        self._gone: Gone | None = None

    def listen(self, born: Born, gone: Gone) -> None:
        self._born, self._gone = born, gone

    def __len__(self) -> int:
        """Return how many ids there are, unused ones included."""
        return len(self._keys)

    def acquire(self, namespace: str, labels: Labels | None) -> int:
        """Return the id and count one more pod."""
        labels = labels or _NO_LABELS
        key = namespace, frozenset(labels.items())
        found = self._ids.get(key)
        if found is None:
            return self._lay_out(key, namespace, labels)
        self._uses[found] += 1
        return found

    def release(self, set_id: int) -> None:
        """Count one pod less; the last one frees the id."""
        uses = self._uses[set_id] = self._uses[set_id] - 1
        key = self._keys[set_id]
        if uses or key is None:
            return
        del self._ids[key]
        self._ids = compact(self._ids)
        self._keys[set_id] = None
        spaces = self._columns[_NAMESPACE]
        self._namespaces.release(int(spaces[set_id]))
        spaces[set_id] = -1
        self._labels.put(NodeRow(set_id), None)
        self._give_back(set_id)
        if self._gone is not None:
            self._gone(set_id)

    def _give_back(self, set_id: int) -> None:
        """Free an id, and shorten what is kept by id if those at the end are free."""
        self._seats.leave(set_id)
        size = len(self._seats)
        del self._keys[size:], self._uses[size:]
        self._columns.release(size)

    def at(self, set_id: int) -> tuple[str, Labels] | None:
        key = self._keys[set_id] if set_id < len(self._keys) else None
        return None if key is None else (key[0], dict(key[1]))

    def match(self, namespaces: Iterable[str] | None, requirements: Requirements | None) -> Mask:
        """Return, for each id, whether it is picked; `namespaces` of None are all of them."""
        size = len(self._keys)
        if requirements is None:
            return np.zeros(size, dtype=np.bool_)
        space = self._columns[_NAMESPACE][:size]
        if namespaces is None:
            picked: Mask = space >= 0
        else:
            found = map(self._namespaces.id_of, namespaces)
            known = [space_id for space_id in found if space_id is not None]
            picked = space == known[0] if len(known) == 1 else np.isin(space, known)
        for requirement in requirements:
            picked &= self._meets(requirement, size)
        return picked

    def picked_by(self, counted: SelectedPods) -> Mask:
        picked = self.match(None, ())
        for namespaces, requirements in counted.selections:
            picked &= self.match(namespaces, requirements)
        return picked

    def weights(self, counted: SelectedPods | WeighedPods) -> npt.NDArray[np.int64]:
        if isinstance(counted, SelectedPods):
            return self.picked_by(counted).astype(np.int64)
        found = np.zeros(len(self), dtype=np.int64)
        for (namespaces, requirements), weight in counted.selections:
            found += weight * self.match(namespaces, requirements)
        return found

    def _meets(self, requirement: Requirement, size: int) -> Mask:
        ids = self._labels.column(requirement.key)[:size]
        if requirement.operator == EXISTS:
            return ids >= 0
        if requirement.operator == DOES_NOT_EXIST:
            return ids < 0
        wanted = [self._labels.known_id(value) for value in requirement.values]
        found: Mask = ids == wanted[0] if len(wanted) == 1 else np.isin(ids, wanted)
        return found if requirement.operator == IN else ~found

    def _lay_out(self, key: _Key, namespace: str, labels: Labels) -> int:
        found = self._seats.take()
        if found < len(self._keys):
            self._keys[found] = key
            self._uses[found] = 1
        else:
            self._keys.append(key)
            self._uses.append(1)
            if found >= self._columns.capacity:
                self._columns.reserve(found + 1)
        self._ids[key] = found
        self._columns[_NAMESPACE][found] = self._namespaces.acquire(namespace)
        self._labels.put(NodeRow(found), labels)
        if self._born is not None:
            self._born(found, namespace, labels)
        return found
