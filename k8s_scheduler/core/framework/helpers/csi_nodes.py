"""What CSINodes say about nodes, as a column: most nodes of a cluster say the same.

Distinct contents get small ids; id 0 is a node without a CSINode. A question about all nodes is
then asked once for each distinct content.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.storage.csi_translation import MIGRATED_PLUGINS
from k8s_scheduler.api.storage.objects import CsiNode, annotations_of
from k8s_scheduler.core.framework.evaluation.remembered import Remembered
from k8s_scheduler.core.framework.views.rows_view import Mask, RowsView


@dataclass(frozen=True, slots=True)
class CsiFacts:
    """One content of a CSINode: (driver, limit) pairs, and the plugins that were handed over."""

    drivers: tuple[tuple[str, int | None], ...]
    migrated: frozenset[str]

    def has(self, driver: str) -> bool:
        return any(name == driver for name, _ in self.drivers)

    def limit(self, driver: str) -> int | None:
        """Return how many volumes of a driver can be attached; None is no limit."""
        limits = [limit for name, limit in self.drivers if name == driver and limit is not None]
        return limits[-1] if limits else None


@dataclass(frozen=True, slots=True)
class CsiColumn:
    """The id of each row's facts, and the facts by id."""

    ids: npt.NDArray[np.int64]
    facts: tuple[CsiFacts | None, ...]

    def where(self, rows: RowsView, holds: Callable[[CsiFacts | None], bool]) -> Mask:
        """Return the rows whose facts have a property."""
        by_id = np.array([holds(facts) for facts in self.facts], dtype=np.bool_)
        found: Mask = by_id[rows.cut(self.ids)]
        return found

    def has_limit(self, driver: str) -> bool:
        """Return whether any node has a limit for a driver."""
        return any(facts is not None and facts.limit(driver) is not None for facts in self.facts)

    def limits(self, rows: RowsView, driver: str) -> npt.NDArray[np.int64]:
        """Return each row's limit for a driver; negative where there is none."""
        limits = [None if facts is None else facts.limit(driver) for facts in self.facts]
        by_id = np.array([-1 if limit is None else limit for limit in limits], dtype=np.int64)
        return by_id[rows.cut(self.ids)]


class CsiNodes:
    """Makes the column, again only when a CSINode changed or a node came or went."""

    def __init__(self) -> None:
        self._known: Remembered[CsiColumn] = Remembered()

    def column(self, rows: RowsView) -> CsiColumn:
        found = rows.objects(Kind.CSI_NODE, "")
        return self._known.get((found, rows.layout), lambda: _column(found, rows))


def _column(nodes: tuple[Any, ...], rows: RowsView) -> CsiColumn:
    ids = rows.full_column()
    by_facts: dict[CsiFacts, int] = {}
    for node in nodes:
        row = rows.row_of(NodeName(node.metadata.name))
        if row is not None and row < len(ids):
            ids[row] = by_facts.setdefault(_facts_of(node), len(by_facts) + 1)
    return CsiColumn(ids, (None, *by_facts))


def _facts_of(node: CsiNode) -> CsiFacts:
    named = annotations_of(node.metadata).get(MIGRATED_PLUGINS, "")
    return CsiFacts(
        tuple(
            (driver.name, None if driver.allocatable is None else driver.allocatable.count)
            for driver in node.spec.drivers or ()
        ),
        frozenset(named.split(",")) if named else frozenset(),
    )
