"""What happened to rows and objects, in the words of kube-scheduler's cluster events.

The log has one reader (the parked pods); it asks what happened since it last looked, and entries
it has seen are dropped. A reader that must not miss anything asks before it decides.
"""

import enum
from dataclasses import dataclass, field
from typing import NewType

from k8s_scheduler.api.kinds import GROUPS, Kind

NodeRow = NewType("NodeRow", int)


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
    """Return the label of the first event among the bits."""
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


def object_event_label(kind: Kind, change: ObjectChange) -> str:
    """Return kube-scheduler's label of the first event among the bits."""
    group = f"{GROUPS[kind]}/" if GROUPS[kind] else ""
    for bit, action in _OBJECT_ACTIONS.items():
        if change & bit:
            return f"{group}{kind}{action}"
    raise ValueError(f"no event in {change!r}")


@dataclass(slots=True)
class Changes:
    """What happened, row by row and kind by kind."""

    rows: dict[NodeRow, Change] = field(default_factory=dict)
    objects: dict[Kind, ObjectChange] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rows or self.objects)


class ChangeLog:
    """What happened since the reader last asked; never larger than the tables."""

    def __init__(self) -> None:
        self._changes = Changes()
        # How often anything was noted: who remembers it knows whether something has happened since.
        self.count = 0

    def note(self, row: NodeRow, change: Change) -> None:
        """Note what happened to a row."""
        self.count += 1
        rows = self._changes.rows
        rows[row] = rows.get(row, Change(0)) | change

    def note_object(self, kind: Kind, change: ObjectChange) -> None:
        """Note what happened to an object."""
        self.count += 1
        objects = self._changes.objects
        objects[kind] = objects.get(kind, ObjectChange(0)) | change

    def __bool__(self) -> bool:
        return bool(self._changes)

    def take_back(self, changes: Changes) -> None:
        """Note again what was drained and not dealt with."""
        for row, change in changes.rows.items():
            self.note(row, change)
        for kind, happened in changes.objects.items():
            self.note_object(kind, happened)

    def peek(self) -> Changes:
        """Return a copy of what is noted, without forgetting it."""
        return Changes(dict(self._changes.rows), dict(self._changes.objects))

    def drain(self) -> Changes:
        """Return what happened, and forget it."""
        changes, self._changes = self._changes, Changes()
        return changes
