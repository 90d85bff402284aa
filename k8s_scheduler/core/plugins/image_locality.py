"""ImageLocality: rather a node that has the pod's images already.

Score. Assumptions: an image on few nodes is worth little, so that pods do not pile up there.
Formula: the sum, over the pod's images on the node (of init containers, containers and volumes), of
size times the share of nodes that hold the image (each rounded down), clamped to 23 MiB .. 1000 MiB
per image of the pod and scaled to 0..100.
Ties are left to the engine.
"""

from typing import ClassVar

import numpy as np

from k8s_scheduler.core.framework.dependencies import Dependency, Row
from k8s_scheduler.core.framework.plugin import MAX_SCORE, Same
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView, Scores

_MIB = 1024 * 1024
MIN_BYTES = 23 * _MIB
MAX_BYTES_PER_IMAGE = 1000 * _MIB


class ImageLocality:
    """Prefers nodes that hold the pod's images already, as far as other nodes hold them too."""

    name: ClassVar[str] = "ImageLocality"
    reasons: ClassVar[tuple[Reason, ...]] = ()
    depends_on: ClassVar[tuple[Dependency, ...]] = (Row("images"), Row("node_count"))

    def pre_score(self, pod: PodView, rows: RowsView) -> tuple[str, ...] | Same:
        """Take the images' full names. Never skips, but images may be nowhere yet."""
        names = tuple(normalized(image) for image in pod.images)
        return names if any(map(rows.image_holders, names)) else Same(0)

    def score(self, term: tuple[str, ...], rows: RowsView) -> Scores:
        total = np.zeros(len(rows), dtype=np.int64)
        for name in term:
            share = rows.image_holders(name) / rows.node_count
            if share:
                total += (rows.image_sizes(name) * share).astype(np.int64)
        most = MAX_BYTES_PER_IMAGE * len(term)
        clamped = np.where(total < MIN_BYTES, MIN_BYTES, np.minimum(total, most))
        # Towards zero, as Go divides: a pod without images has nothing to clamp to.
        return _truncated(MAX_SCORE * (clamped - MIN_BYTES), most - MIN_BYTES)


def normalized(image: str) -> str:
    """Return the image's name with its tag; one without tag or digest means `latest`."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _truncated(dividend: Scores, divisor: int) -> Scores:
    quotient = np.abs(dividend) // abs(divisor)
    return quotient if divisor > 0 else -quotient
