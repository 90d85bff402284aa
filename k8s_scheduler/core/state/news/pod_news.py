"""Which pods came, left or changed: as much of it as says which counts may be others now.

Counts of pods go by their namespace, their labels and the terms that they hold. By these a pod is
filed behind *doors*: a namespace or any, with one of its labels or any. A count that asks for pods
in a namespace with a certain label looks behind that one door.

Where there are too many doors to remember, any count may be another one.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from k8s_scheduler.api.meta import Labels
from k8s_scheduler.api.pod import Pod

# By what a pod is found: a namespace and a label pair, None where it may be any.
Door: TypeAlias = tuple[str | None, tuple[str, str] | None]

_NO_LABELS: Labels = {}
# So many pods are filed at once: mostly they are forgotten before, because no pod is parked.
_UNFILED: Final = 256
# A pod with more labels than this may be behind any door: what it has is not held on to, which may
# be much, and a standby does not look.
_LABELS: Final = 64


class PodNews:
    """Pods that came, left or changed since waking last looked."""

    # So many doors are remembered.
    MOST: Final = 16_384

    __slots__ = ("_doors", "_holders", "_is_any", "_unfiled")

    def __init__(self, *, is_any: bool = False) -> None:
        self._is_any = is_any
        # Stands for a set.
        self._doors: dict[Door, None] = {}
        self._holders = False
        self._unfiled: list[tuple[str, Labels]] = []

    def meet(self, pod: Pod) -> None:
        if self._is_any:
            return
        metadata, affinity = pod.metadata, pod.spec.affinity
        labels = metadata.labels or _NO_LABELS
        if len(labels) > _LABELS:
            self._take_any()
            return
        if affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity):
            self._holders = True
        self._unfiled.append((metadata.namespace, labels))
        if len(self._unfiled) >= _UNFILED:
            self._file()

    def include(self, other: "PodNews") -> None:
        self._doors.update(other.doors)
        self._holders = self._holders or other.hold_terms
        self._is_any = self._is_any or other.is_any
        self._bound()

    @property
    def is_any(self) -> bool:
        if self._unfiled:
            self._file()
        return self._is_any

    @property
    def hold_terms(self) -> bool:
        return self._holders or self._is_any

    @property
    def doors(self) -> Mapping[Door, None]:
        """The doors behind which one of them is; of no use if it may have been any."""
        if self._unfiled:
            self._file()
        return self._doors

    def _file(self) -> None:
        known = self._doors
        for namespace, labels in self._unfiled:
            for pair in (None, *labels.items()):
                known[None, pair] = None
                known[namespace, pair] = None
        self._unfiled = []
        self._bound()

    def _bound(self) -> None:
        if self._is_any or len(self._doors) > self.MOST:
            self._take_any()

    def _take_any(self) -> None:
        self._is_any = True
        self._doors, self._unfiled = {}, []
