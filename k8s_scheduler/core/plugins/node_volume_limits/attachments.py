"""What VolumeAttachments say is attached to nodes, or on its way there."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.storage.objects import PersistentVolume, VolumeAttachment
from k8s_scheduler.core.framework.evaluation.remembered import Remembered
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.framework.views.values import unique_name
from k8s_scheduler.core.plugins.node_volume_limits.attachable import Attachable


@dataclass(frozen=True, slots=True)
class AttachmentIndex:
    """The attachments of each node, and their number by row."""

    by_node: Mapping[str, tuple[VolumeAttachment, ...]]
    counts: npt.NDArray[np.int64] = field(compare=False)


class Attachments:
    """Sorts attachments by node, again only when one changed or a node came or went."""

    def __init__(self) -> None:
        self._known: Remembered[AttachmentIndex] = Remembered()

    def index(self, rows: RowsView) -> AttachmentIndex:
        found = rows.objects(Kind.VOLUME_ATTACHMENT, "")
        return self._known.get((found, rows.layout), lambda: _index(found, rows))


def _index(attachments: tuple[VolumeAttachment, ...], rows: RowsView) -> AttachmentIndex:
    by_node: dict[str, list[VolumeAttachment]] = {}
    for attachment in attachments:
        by_node.setdefault(attachment.spec.node_name, []).append(attachment)
    counts = rows.full_column()
    for name, found in by_node.items():
        row = rows.row_of(NodeName(name))
        if row is not None:
            counts[row] = len(found)
    return AttachmentIndex({name: tuple(found) for name, found in by_node.items()}, counts)


def attached(index: AttachmentIndex, node: NodeName, rows: RowsView) -> Attachable:
    """Return the volumes of CSI drivers that are attached to a node."""
    found: Attachable = {}
    for attachment in index.by_node.get(node, ()):
        spec = attachment.spec
        name = spec.source.persistent_volume_name
        if not spec.attacher or name is None:
            continue
        volume: PersistentVolume | None = rows.object(Kind.PERSISTENT_VOLUME, "", name)
        if volume is not None and volume.spec.csi is not None:
            found[unique_name(spec.attacher, volume.spec.csi.volume_handle)] = spec.attacher
    return found
