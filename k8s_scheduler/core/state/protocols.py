"""What the parts of the core need of the state: as much as each reads, and no more.

Views and evaluations read `Tables`. Preemption, checks and metrics also ask which pods take room
where (`PlacedPods`). The cycles of the engine also promise room and take it (`Assuming`). The whole
(`cache`) is known to the modules that build and fill it. Another state, such as one to plan on,
offers the same.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.resources import Requests
from k8s_scheduler.core.state.amounts.overdrawn import Overdrawn
from k8s_scheduler.core.state.counts.pod_counter import Crowd
from k8s_scheduler.core.state.delta import Delta, PlacedPod
from k8s_scheduler.core.state.news.changes import ChangeLog
from k8s_scheduler.core.state.news.facts import FactLog
from k8s_scheduler.core.state.nodes.node_table import NodeTable
from k8s_scheduler.core.state.objects import ObjectStore
from k8s_scheduler.core.state.pods.nominations import Nominations
from k8s_scheduler.core.state.pods.pod_index import PodIndex
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.core.state.volumes.by_class import OffersByClass
from k8s_scheduler.core.state.volumes.users_by_row import VolumeUsers


class RoomTaken(NamedTuple):
    """Where a pod takes room, and how much."""

    node: NodeName
    requests: Requests


class Tables(Protocol):
    """What decisions depend on, and the logs of what changed in it."""

    nodes: NodeTable
    pods: PodIndex
    objects: ObjectStore
    volumes: VolumeUsers
    offers: OffersByClass
    nominations: Nominations
    facts: FactLog
    changes: ChangeLog

    @property
    def moment(self) -> tuple[int, int]: ...

    def delta(self, row: NodeRow) -> Delta: ...

    def forget_attached(self) -> None: ...


class PlacedPods(Tables, Protocol):
    """Which pods take room, by uid and by row."""

    @property
    def pod_count(self) -> int: ...

    @property
    def assumed_count(self) -> int: ...

    def is_assumed(self, uid: PodUid) -> bool: ...

    def node_of(self, uid: PodUid) -> NodeName | None: ...

    def place_of(self, uid: PodUid) -> RoomTaken | None: ...

    def pod(self, uid: PodUid) -> Pod | None: ...

    def pods_on(self, row: NodeRow) -> list[PlacedPod]: ...

    def pods_version(self, row: NodeRow) -> int: ...

    def namespaces_on(self, row: NodeRow) -> dict[str, None]: ...

    def crowd(self, pods: Iterable[PlacedPod]) -> Crowd: ...

    def rows_with_lesser(self, priority: int) -> npt.NDArray[np.bool_]: ...

    def overdrawn(self, row: NodeRow, resources: Iterable[str]) -> tuple[Overdrawn, ...]: ...

    def resources_on(self, row: NodeRow) -> Iterable[str]: ...


class Assuming(PlacedPods, Protocol):
    """What an attempt does to the state: promise room, take it, give it back."""

    def nominate(self, pod: Pod, node: NodeName) -> None: ...

    def end_nomination(self, uid: PodUid) -> None: ...

    def assume(self, pod: Pod, row: NodeRow, requests: Requests | None = None) -> None: ...

    def announce(self, uid: PodUid) -> None: ...

    def forget(self, uid: PodUid, *, quietly: bool = False) -> None: ...

    def age(self, *, now: float) -> None: ...
