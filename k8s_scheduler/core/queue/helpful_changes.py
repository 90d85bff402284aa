"""What of the changes in the cluster may help pods that some plugins reject."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.state.news.changes import (
    COUNTED_PODS,
    Change,
    Changes,
    event_label,
    object_event_label,
)
from k8s_scheduler.core.state.nodes.node_table import NodeTable, Rows
from k8s_scheduler.core.state.rows import NodeRow


@dataclass(slots=True)
class HelpfulChanges:
    """The rows that changed in a way that may help, and whether others have to be judged too."""

    rows: Mapping[NodeRow, Change]
    # Whether other rows than these may be better now.
    everywhere: bool
    # What it is called, if nothing in particular helps.
    event: str
    # Those of the rows that have a node, as long as the nodes are these.
    _touched: list[NodeRow] = field(default_factory=list)
    _asked: Rows | None = None
    _nodes: Rows | None = None

    def where(self, nodes: NodeTable) -> tuple[list[NodeRow], Rows]:
        present = nodes.present_rows()
        if self._asked is None or self._nodes is not present:
            self._nodes = present
            self._touched = [row for row in self.rows if nodes.node_at(row) is not None]
            touched = np.array(self._touched, dtype=np.int64)
            self._asked = present if self.everywhere else touched
        return self._touched, self._asked


def helpful_changes(
    changes: Changes, profile: Profile, rejectors: frozenset[str], *, is_met: bool
) -> HelpfulChanges | None:
    """Return what may change the mind of one of the plugins; None if nothing may."""
    plugins = sorted(rejectors)
    rows = _helpful(changes.rows, _help_for_any(plugins, profile, is_met=is_met))
    read = [profile.helpful_kinds.get(name) for name in plugins]
    kinds = [k for k in changes.objects if any(known is None or k in known for known in read)]
    if not rows and not kinds:
        return None
    event = (
        object_event_label(kinds[0], changes.objects[kinds[0]])
        if kinds
        else event_label(next(iter(rows.values())))
    )
    wide = [name for name in plugins if name in profile.wide]
    elsewhere = _helpful(rows, _help_for_any(wide, profile, is_met=is_met))
    return HelpfulChanges(rows, everywhere=bool(kinds or elsewhere), event=event)


def _help_for_any(plugins: Iterable[str], profile: Profile, *, is_met: bool) -> Change:
    """Return the events that may change the mind of one of the plugins.

    A rejector that is no plugin of the profile may be helped by anything. Those that count pods are
    not helped by pods that none of them counts.
    """
    helpful = Change(0)
    for name in plugins:
        helps = profile.helped_by.get(name, ~Change(0))
        if not is_met and name in profile.helped_by_counts:
            helps &= ~COUNTED_PODS
        helpful |= helps
    return helpful


def _helpful(rows: Mapping[NodeRow, Change], helpful: Change) -> dict[NodeRow, Change]:
    # Many rows, few ways in which they changed; and flags are slow to combine.
    bits, known = helpful.value, dict[int, Change]()
    found: dict[NodeRow, Change] = {}
    for row, change in rows.items():
        value = change.value
        if value & bits:
            if value not in known:
                known[value] = change & helpful
            found[row] = known[value]
    return found
