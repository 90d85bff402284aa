"""What happened to rows, in the words of kube-scheduler's cluster events.

The log has one reader (the parked pods); it asks what happened since it last looked, and entries
it has seen are dropped. A reader that must not miss anything asks before it decides.
"""

import enum
from collections.abc import Mapping
from typing import NewType

NodeRow = NewType("NodeRow", int)


class Change(enum.IntFlag):
    """One bit per kind of event; a plugin names those that may help a pod it rejected."""

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
}


def event_label(change: Change) -> str:
    """Return the label of the first event among the bits."""
    for bit, label in EVENT_LABELS.items():
        if change & bit:
            return label
    raise ValueError(f"no event in {change!r}")


class ChangeLog:
    """What happened to each row since the reader last asked; never larger than the table."""

    def __init__(self) -> None:
        self._changes: dict[NodeRow, Change] = {}

    def note(self, row: NodeRow, change: Change) -> None:
        """Note what happened to a row."""
        self._changes[row] = self._changes.get(row, Change(0)) | change

    def __len__(self) -> int:
        return len(self._changes)

    def take_back(self, changes: Mapping[NodeRow, Change]) -> None:
        """Note again what was drained and not dealt with."""
        for row, change in changes.items():
            self.note(row, change)

    def peek(self) -> dict[NodeRow, Change]:
        """Return a copy of what is noted, without forgetting it."""
        return dict(self._changes)

    def drain(self) -> dict[NodeRow, Change]:
        """Return what happened to each row, and forget it."""
        changes, self._changes = self._changes, {}
        return changes
