"""Reports objects that cannot be decoded: every one is counted, each is logged once.

Memory is bounded: of very many, the ones logged longest ago may be logged again.
"""

import logging
from collections import OrderedDict
from typing import Final

from k8s_scheduler.kube.watch.decoding import Undecodable
from k8s_scheduler.obs.metrics import KubeMetrics

logger = logging.getLogger(__name__)

REMEMBERED: Final = 1024


class UndecodableLog:
    """Counts and names the unreadable objects of one resource."""

    def __init__(self, plural: str, metrics: KubeMetrics) -> None:
        self._plural = plural
        self._count = metrics.undecodable_objects.labels(plural)
        self._named: OrderedDict[str, None] = OrderedDict()

    def report(self, found: Undecodable) -> None:
        """Count an object, and log it unless that was done before."""
        self._count.inc()
        if found.key in self._named:
            self._named.move_to_end(found.key)
            return
        self._named[found.key] = None
        if len(self._named) > REMEMBERED:
            self._named.popitem(last=False)
        logger.warning(
            "object cannot be decoded and is left out",
            extra={
                "fields": {
                    "resource": self._plural,
                    "key": found.key or "unknown",
                    "uid": found.uid,
                    "problem": found.problem,
                }
            },
        )
