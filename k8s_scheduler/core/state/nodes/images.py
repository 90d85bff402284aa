"""Which images are on which rows, and how large.

Every node's own size counts, and the number of nodes is exact: kube-scheduler remembers the size
it saw first, which makes its scores depend on history.
"""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.node import ContainerImage
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.lib.hollow import compact

Sizes: TypeAlias = npt.NDArray[np.int64]
_NOWHERE: Mapping[NodeRow, int] = {}
# As many images are kept as columns; pods of few workloads arrive at a time.
_COLUMNS = 64


class ImageIndex:
    """By image name: the rows that hold it, with its size there."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[NodeRow, int]] = {}
        # The lists of the nodes themselves.
        self._known: dict[NodeRow, list[ContainerImage]] = {}
        # Grows whenever a node's images change.
        self.generation = 0
        # Columns that were asked for, until the image comes to or leaves a node.
        self._columns: dict[str, Sizes] = {}

    def put(self, row: NodeRow, images: list[ContainerImage] | None) -> bool:
        if self._known.get(row) == (images or None):
            if images:
                # As the node has it now: nothing else needs the older copy.
                self._known[row] = images
            return False
        self.generation += 1
        self._forget(row)
        if images:
            self._known[row] = images
        for name, size in _sizes(images).items():
            self._rows.setdefault(name, {})[row] = size
            self._columns.pop(name, None)
        return True

    def _forget(self, row: NodeRow) -> None:
        for name in _sizes(self._known.pop(row, None)):
            self._columns.pop(name, None)
            rows = self._rows[name]
            del rows[row]
            if rows:
                self._rows[name] = compact(rows)
            else:
                del self._rows[name]
        self._rows, self._known = compact(self._rows), compact(self._known)

    def sizes(self, name: str) -> Mapping[NodeRow, int]:
        return self._rows.get(name, _NOWHERE)

    def column(self, name: str, row_count: int) -> Sizes:
        """Return the size of one image for each row, 0 where it is not. Do not write to it."""
        column = self._columns.get(name)
        if column is None or len(column) < row_count:
            column = np.zeros(row_count, dtype=np.int64)
            rows = self._rows.get(name, _NOWHERE)
            column[list(rows)] = list(rows.values())
            if len(self._columns) >= _COLUMNS:
                del self._columns[next(iter(self._columns))]
            self._columns[name] = column
        return column

    def forget_columns(self) -> None:
        """Let go of columns that may be longer than the table is now."""
        self._columns.clear()


def _sizes(images: list[ContainerImage] | None) -> dict[str, int]:
    return {name: image.size_bytes for image in images or () for name in image.names or ()}
