"""A pending pod, what the queue knows about it, and what it reports of it."""

import enum
from dataclasses import dataclass, field

import msgspec

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.seeds import seed_of
from k8s_scheduler.core.framework.shapes import ShapeKey, shape_of
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.messages.checkpoint import QueueEntry


class QueuePlace(enum.StrEnum):
    """Where a pending pod waits; the values are kube-scheduler's metric labels."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    PARKED = "unschedulable"
    GATED = "gated"


@dataclass(slots=True)
class QueuedPod:
    """One pending pod. Only the queue changes it."""

    pod: Pod
    # When it last entered the queue, and when it could first be tried (the start of the SLI).
    timestamp: float
    first_active: float | None = None
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    rejectors: tuple[str, ...] = ()
    place: QueuePlace = QueuePlace.ACTIVE
    sequence: int = 0
    backoff_expiry: float = 0.0
    # The number of the last change that its last attempt knew of.
    seen: int = 0
    # The digest of what it was told when filters rejected it, and when it may be told something
    # else (see `engine.renewals`). 0: something else has held it back, or nothing was told.
    told: int = 0
    renewable_at: float = 0.0
    # Whether only the clock has brought it back to be tried; for metrics, not kept in checkpoints.
    was_flushed: bool = False
    # Asked for at every step, and never another one.
    uid: PodUid = field(init=False)
    _shape: ShapeKey | None = field(init=False, compare=False)
    _view: PodView | None = field(init=False, default=None)
    # The seed of an attempt, and of which.
    _seed: tuple[int, int] = field(init=False, compare=False, default=(-1, 0))

    def __post_init__(self) -> None:
        self.uid = PodUid(self.pod.metadata.uid)
        # Worked out when it is needed: a pod that waits at a gate needs none.
        self._shape = None

    @property
    def shape(self) -> ShapeKey:
        if self._shape is None:
            self._shape = shape_of(self.pod)
        return self._shape

    @property
    def seed(self) -> int:
        """Return the number of the present attempt: see `seeds`."""
        attempt, seed = self._seed
        if attempt != self.attempts:
            seed = seed_of(self.pod, attempt=self.attempts)
            self._seed = (self.attempts, seed)
        return seed

    @property
    def view(self) -> PodView:
        """Return the pod as plugins see it, made once; QuantityError if it can't be read."""
        if self._view is None:
            self._view = PodView(self.pod)
        return self._view

    def replace_pod(self, pod: Pod, shape: ShapeKey | None = None) -> None:
        """Take a newer version of the same pod, and its shape if that is known already."""
        self.pod = pod
        self._view = None
        self._shape = shape

    # A checkpoint's entry has fields of the same names.

    def entry(self) -> QueueEntry:
        values = {name: getattr(self, name) for name in QueueEntry.__struct_fields__}
        return QueueEntry(**values | {"place": self.place.value})

    @staticmethod
    def from_entry(entry: QueueEntry) -> "QueuedPod":
        return QueuedPod(**msgspec.structs.asdict(entry) | {"place": QueuePlace(entry.place)})


class QueueObserver:
    """Is told of every move, so that the queue knows no metrics: the engine makes these of it."""

    def moved(
        self, queued: QueuedPod, *, source: QueuePlace | None, target: QueuePlace | None
    ) -> None:
        """Take note of a pod that left `source` (None: it is new) for `target` (None: it left)."""

    def entered(self, place: QueuePlace, event: str) -> None:
        """Take note of why a pod entered a place."""

    def rejudged(self, queued: QueuedPod, rejectors: tuple[str, ...]) -> None:
        """Take note that other plugins are about to be what rejects a parked pod."""
