"""Which counters a label set concerns, and by what it finds them.

A new label set asks only counters that it may concern: they are found by namespace and by one label
pair that they demand. What came out is remembered by those labels that any counter looks at: sets
that differ in others alone, as those of a StatefulSet's pods do, concern the same counters.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias, TypeVar

from k8s_scheduler.api.selectors.labels import IN
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from k8s_scheduler.core.state.counts.questions import SelectedPods
from k8s_scheduler.core.state.news.pod_news import Door
from k8s_scheduler.lib.hollow import compact

# A namespace and the labels that counters look at.
_Seen: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Concerned(tuple[PodCounter, ...]):
    """Counters that some label sets concern, shared by these: known by its identity alone.

    There may be a thousand of them in one, so comparing or hashing what is in it takes too long.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


NO_COUNTERS: Final = Concerned()
_NO_COUNTED: Final[Mapping[PodCounter, SelectedPods]] = {}


def doors_of(counted: SelectedPods) -> list[Door]:
    """Return behind which doors a counter looks: one, or none where it can't pick anything."""
    space: str | None = None
    pair: tuple[str, str] | None = None
    for namespaces, requirements in counted.selections:
        if requirements is None or namespaces == ():
            return []
        if namespaces is not None and len(namespaces) == 1:
            space = space or namespaces[0]
        for requirement in requirements:
            if requirement.operator == IN and len(requirement.values) == 1:
                pair = pair or (requirement.key, requirement.values[0])
    return [(space, pair)]


def keys_of(counted: SelectedPods) -> dict[str, None]:
    return {
        requirement.key: None
        for _, requirements in counted.selections
        for requirement in requirements or ()
    }


class ConcernIndex:
    """The counters that are told of pods, by label set.

    A counter that was dropped may stay among the concerned for a while, and ignores what it is told
    of: taking out many at once (`sweep`) costs little more than taking out one.
    """

    # So many counters are told of a pod; what further ones count is noted.
    TOLD: Final = 32
    # So many distinct looks of label sets are remembered.
    SEEN: Final = 1024
    # So many that were dropped may still be told of changes.
    UNSWEPT: Final = 64

    def __init__(self) -> None:
        # By label set: the counters that pick it. Ids that concern no counter are not there; those
        # that concern the same counters share one tuple of them. Always the same dict.
        self.concerned: dict[int, Concerned] = {}
        self._seen: dict[_Seen, Concerned] = {}
        # By key of a label: the counters that look at it.
        # Stands for an ordered set.
        self._by_key: dict[str, dict[PodCounter, None]] = {}
        self._by_door: dict[Door, dict[PodCounter, SelectedPods]] = {}
        # Those that were dropped, and are still among the concerned.
        self._unswept: dict[PodCounter, None] = {}

    def meet(self, label_set: int, namespace: str, labels: Mapping[str, str]) -> None:
        if not self._by_door:
            return
        by_key = self._by_key
        seen = namespace, tuple([pair for pair in labels.items() if pair[0] in by_key])
        found = self._seen.get(seen)
        if found is None:
            if len(self._seen) >= self.SEEN:
                self._seen.clear()
            found = self._seen[seen] = self._picking(namespace, labels)
        if found:
            self.concerned[label_set] = found

    def _picking(self, namespace: str, labels: Mapping[str, str]) -> Concerned:
        return Concerned(
            counter
            for pair in (None, *labels.items())
            for space in (None, namespace)
            for counter, counted in self._by_door.get((space, pair), _NO_COUNTED).items()
            if counted.picks(namespace, labels)
        )

    def add(self, counter: PodCounter, counted: SelectedPods, picked: list[int]) -> bool:
        """Let these label sets concern one counter more; return whether there was room for it."""
        if not self._concern(picked, counter):
            if not self._unswept:
                return False
            # Some of those in its way are told for nothing.
            self.sweep()
            if not self._concern(picked, counter):
                return False
        for door in doors_of(counted):
            self._by_door.setdefault(door, {})[counter] = counted
        for key in keys_of(counted):
            self._by_key.setdefault(key, {})[counter] = None
        return True

    def drop(self, counter: PodCounter, counted: SelectedPods) -> None:
        """Let a counter be concerned no more, now or a little later."""
        for door in doors_of(counted):
            take_out(self._by_door, door, counter)
        for key in keys_of(counted):
            take_out(self._by_key, key, counter)
        self._by_door, self._by_key = compact(self._by_door), compact(self._by_key)
        self._unswept[counter] = None
        if len(self._unswept) > self.UNSWEPT:
            self.sweep()

    def sweep_if_dropped(self, counter: PodCounter) -> None:
        """Make sure that a counter is not told of pods because it was once."""
        if counter in self._unswept:
            self.sweep()

    def sweep(self) -> None:
        """Let those that were dropped be concerned no more, all at once."""
        gone, self._unswept = self._unswept, {}
        self._seen.clear()
        # Label sets that shared counters before share them from now on.
        swept: dict[Concerned, Concerned] = {}
        before = list(self.concerned.items())
        self.concerned.clear()
        for label_set, known in before:
            left = swept.get(known)
            if left is None:
                left = swept[known] = Concerned([c for c in known if c not in gone])
            if left:
                self.concerned[label_set] = left

    def _concern(self, picked: list[int], counter: PodCounter) -> bool:
        concerned = self.concerned
        # Label sets that shared counters before share them from now on.
        shared: dict[Concerned, Concerned] = {}
        for known in dict.fromkeys(concerned.get(label_set, NO_COUNTERS) for label_set in picked):
            if len(known) >= self.TOLD:
                return False
            shared[known] = Concerned((*known, counter))
        self._seen.clear()
        for label_set in picked:
            concerned[label_set] = shared[concerned.get(label_set, NO_COUNTERS)]
        return True


def take_out(where: dict[_Key, dict[PodCounter, _Value]], key: _Key, counter: PodCounter) -> None:
    here = where.get(key)
    if here is not None and counter in here:
        del here[counter]
        if not here:
            del where[key]
