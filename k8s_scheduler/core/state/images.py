"""Which images are on which rows, and how large.

Every node's own size counts, and the number of nodes is exact: kube-scheduler remembers the size
it saw first, which makes its scores depend on history.
"""

from collections.abc import Iterable, Mapping

from k8s_scheduler.api.node import ContainerImage
from k8s_scheduler.core.state.changes import NodeRow

_NOWHERE: Mapping[NodeRow, int] = {}


class ImageIndex:
    """By image name: the rows that hold it, with its size there."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[NodeRow, int]] = {}
        self._names: dict[NodeRow, tuple[str, ...]] = {}

    def put(self, row: NodeRow, images: Iterable[ContainerImage] | None) -> None:
        """Take the images of a node, in place of what it had."""
        for name in self._names.pop(row, ()):
            rows = self._rows[name]
            del rows[row]
            if not rows:
                del self._rows[name]
        sizes = {name: image.size_bytes for image in images or () for name in image.names or ()}
        if sizes:
            self._names[row] = tuple(sizes)
            for name, size in sizes.items():
                self._rows.setdefault(name, {})[row] = size

    def sizes(self, name: str) -> Mapping[NodeRow, int]:
        """Return row -> size in bytes for one image."""
        return self._rows.get(name, _NOWHERE)
