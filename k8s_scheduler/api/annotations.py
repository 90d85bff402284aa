"""The annotations that scheduling reads, of whatever kind.

Annotations may take 256 KiB per object, and hold what containers get in their environment
(kubectl's last applied configuration): the others are not kept, and are in no recording.
"""

from typing import Final

from k8s_scheduler.api.meta import Labels
from k8s_scheduler.api.storage.claims import BETA_CLASS, BIND_COMPLETED, SELECTED_NODE
from k8s_scheduler.api.storage.csi_translation import MIGRATED_PLUGINS

# On volumes: whether a controller bound them.
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
# On pods that a kubelet runs from files of its own.
MIRROR: Final = "kubernetes.io/config.mirror"

READ: Final[tuple[str, ...]] = (
    BETA_CLASS,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    MIGRATED_PLUGINS,
    MIRROR,
    SELECTED_NODE,
)


def leave_out_unread(annotations: Labels) -> None:
    """Drop the annotations that nothing reads.

    One name stays if there would be none: VolumeBinding asks whether a claim has any.
    """
    name = next(iter(annotations))
    kept = {key: annotations[key] for key in READ if key in annotations} or {name: ""}
    annotations.clear()
    annotations.update(kept)
