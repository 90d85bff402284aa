"""What happened to rows and objects, in the words of kube-scheduler's cluster events.

The log has one reader (the parked pods); it asks what happened since it last looked, and entries
it has seen are dropped. A reader that must not miss anything asks before it decides.
"""

import enum
from dataclasses import dataclass, field
from functools import cache

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.state.news.pod_news import PodNews
from k8s_scheduler.core.state.rows import NodeRow


class Change(enum.IntFlag):
    """One bit per kind of event."""

    NODE_ADD = enum.auto()
    NODE_DELETE = enum.auto()
    NODE_ALLOCATABLE = enum.auto()
    NODE_LABEL = enum.auto()
    NODE_TAINT = enum.auto()
    NODE_DECLARED_FEATURE = enum.auto()
    ASSIGNED_POD_ADD = enum.auto()
    ASSIGNED_POD_DELETE = enum.auto()
    ASSIGNED_POD_LABEL = enum.auto()
    ASSIGNED_POD_SCALE_DOWN = enum.auto()
    ASSIGNED_POD_TERMINATING = enum.auto()


# Those after which counts of pods may be others; the pods themselves are noted with them.
COUNTED_PODS = (
    Change.ASSIGNED_POD_ADD
    | Change.ASSIGNED_POD_DELETE
    | Change.ASSIGNED_POD_LABEL
    | Change.ASSIGNED_POD_TERMINATING
)

# The labels kube-scheduler gives these events in its metrics.
EVENT_LABELS = {
    Change.NODE_ADD: "NodeAdd",
    Change.NODE_DELETE: "NodeDelete",
    Change.NODE_ALLOCATABLE: "NodeUpdateNodeAllocatable",
    Change.NODE_LABEL: "NodeUpdateNodeLabel",
    Change.NODE_TAINT: "NodeUpdateNodeTaint",
    Change.NODE_DECLARED_FEATURE: "NodeUpdateNodeDeclaredFeature",
    Change.ASSIGNED_POD_ADD: "AssignedPodAdd",
    Change.ASSIGNED_POD_DELETE: "AssignedPodDelete",
    Change.ASSIGNED_POD_LABEL: "AssignedPodUpdatePodLabel",
    Change.ASSIGNED_POD_SCALE_DOWN: "AssignedPodUpdatePodScaleDown",
    # kube-scheduler has no event of its own for it.
    Change.ASSIGNED_POD_TERMINATING: "AssignedPodUpdate",
}


def event_label(change: Change) -> str:
    for bit, label in EVENT_LABELS.items():
        if change & bit:
            return label
    raise ValueError(f"no event in {change!r}")


class ObjectChange(enum.IntFlag):
    """What happened to objects of a kind."""

    ADD = enum.auto()
    UPDATE = enum.auto()
    DELETE = enum.auto()


_OBJECT_ACTIONS = {
    ObjectChange.ADD: "Add",
    ObjectChange.UPDATE: "Update",
    ObjectChange.DELETE: "Delete",
}


@cache
def object_event_label(kind: Kind, change: ObjectChange) -> str:
    """Return kube-scheduler's label of the first event among the bits."""
    for bit, action in _OBJECT_ACTIONS.items():
        if change & bit:
            return f"{kind}{action}"
    raise ValueError(f"no event in {change!r}")


@dataclass(slots=True)
class Changes:
    """What happened, row by row and kind by kind, and when last: as the number of the note."""

    rows: dict[NodeRow, Change] = field(default_factory=dict)
    objects: dict[Kind, ObjectChange] = field(default_factory=dict)
    row_numbers: dict[NodeRow, int] = field(default_factory=dict)
    object_numbers: dict[Kind, int] = field(default_factory=dict)
    # The pods that came, left or changed.
    pods: PodNews = field(default_factory=PodNews, compare=False, repr=False)
    # The number of the first note, once it was asked for.
    _oldest: int | None = field(default=None, compare=False, repr=False)

    def __bool__(self) -> bool:
        return bool(self.rows or self.objects)

    def since(self, number: int) -> "Changes":
        """Return what was noted after a note of that number. Nothing may be noted afterwards.

        Of pods all are returned: when each was noted is not known.
        """
        if self._oldest is None:
            numbers = (*self.row_numbers.values(), *self.object_numbers.values())
            self._oldest = min(numbers, default=0)
        if number < self._oldest:
            return self
        return Changes(
            {row: change for row, change in self.rows.items() if self.row_numbers[row] > number},
            {kind: c for kind, c in self.objects.items() if self.object_numbers[kind] > number},
            self.row_numbers,
            self.object_numbers,
            self.pods,
        )

    def add(self, other: "Changes") -> None:
        self._oldest = None
        self.pods.include(other.pods)
        for row, change in other.rows.items():
            self.rows[row] = _joined(self.rows.get(row, change), change)
            self.row_numbers[row] = max(other.row_numbers[row], self.row_numbers.get(row, 0))
        for kind, happened in other.objects.items():
            self.objects[kind] = self.objects.get(kind, ObjectChange(0)) | happened
            number = other.object_numbers[kind]
            self.object_numbers[kind] = max(number, self.object_numbers.get(kind, 0))


class ChangeLog:
    """What happened since the reader last asked; never larger than the tables."""

    def __init__(self) -> None:
        self._changes = Changes()
        # The number of the last note: with it `since` tells what came later.
        self.count = 0

    def note(self, row: NodeRow, change: Change, *pods: Pod) -> None:
        """Note what happened to a row, and a pod that came or left; of a changed one both.

        A change that is one of `COUNTED_PODS` and comes without a pod changes no count.
        """
        self.count += 1
        changes = self._changes
        for pod in pods:
            changes.pods.meet(pod)
        rows = changes.rows
        known = rows.get(row)
        rows[row] = change if known is None else _joined(known, change)
        changes.row_numbers[row] = self.count

    def note_object(self, kind: Kind, change: ObjectChange) -> None:
        self.count += 1
        changes = self._changes
        known = changes.objects.get(kind)
        changes.objects[kind] = change if known is None else _joined_objects(known, change)
        changes.object_numbers[kind] = self.count

    def __bool__(self) -> bool:
        return bool(self._changes)

    def forget_pods(self) -> None:
        """Know no more which pods came and left: it may have been any."""
        self._changes.pods = PodNews(is_any=True)

    def take_back(self, changes: Changes) -> None:
        self._changes.add(changes)

    def peek(self) -> Changes:
        """Return a copy of what is noted but for pods, without forgetting it."""
        noted = self._changes
        return Changes(
            dict(noted.rows),
            dict(noted.objects),
            dict(noted.row_numbers),
            dict(noted.object_numbers),
            PodNews(is_any=True),
        )

    def drain(self) -> Changes:
        changes, self._changes = self._changes, Changes()
        return changes


@cache
def _joined(known: Change, change: Change) -> Change:
    # Flags are slow to combine, and there are few combinations.
    return known | change


@cache
def _joined_objects(known: ObjectChange, change: ObjectChange) -> ObjectChange:
    return known | change
