"""NodeVolumeLimits: a pod's volumes must be attachable where it goes.

A CSINode says which drivers a node has and how many volumes each can attach. What the pods of the
node use and what VolumeAttachments name counts, one volume once; a volume of the pod that another
pod of the node uses already is not counted again. A driver may ask (CSIDriver's
`preventPodSchedulingIfMissing`) that pods stay off nodes without it. Evicting pods helps.

The exact look at a node's pods is taken only where a rough count, each use of each volume, could
exceed the limit. One thing follows that kube-scheduler does otherwise: a placed pod whose ephemeral
volume's claim belongs to another pod fails the cycle only where that look is taken.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.storage.csi_translation import in_tree_plugin
from k8s_scheduler.api.storage.objects import CsiDriver
from k8s_scheduler.core.framework.departed import Departed, Quota
from k8s_scheduler.core.framework.dependencies import Dependency, Object, Row
from k8s_scheduler.core.framework.helpers.csi_nodes import CsiColumn, CsiFacts, CsiNodes
from k8s_scheduler.core.framework.plugin import SKIP, Skip
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, Mask, RowsView
from k8s_scheduler.core.framework.views.values import NodeRow
from k8s_scheduler.core.plugins.node_volume_limits.attachable import (
    Attachable,
    MissingClaimError,
    attachable,
)
from k8s_scheduler.core.plugins.node_volume_limits.attachments import (
    AttachmentIndex,
    Attachments,
    attached,
)

_ANY: Final = ""

TOO_MANY = Reason(code="NodeVolumeLimits/TooMany", text="node(s) exceed max volume count")


def missing_claim(text: str) -> Reason:
    """Return the reason for a claim that is not there."""
    return Reason(code="NodeVolumeLimits/MissingClaim", text=text)


def missing_driver(driver: str) -> Reason:
    """Return the reason for a driver that wants to be there."""
    return Reason(
        code="NodeVolumeLimits/MissingDriver",
        text=f"{driver} CSI driver is not installed on the node",
    )


@dataclass(frozen=True, slots=True)
class Demand:
    """What the pod needs attached on one sort of node, or what is wrong with it there.

    `insisting` are those of the drivers that want to be installed.
    """

    volumes: Attachable
    insisting: tuple[str, ...] = ()
    rejection: Reason | None = None
    error: str | None = None

    @property
    def is_sound(self) -> bool:
        """Whether it is only a question of how many volumes there are."""
        return self.error is None and self.rejection is None and not self.insisting


@dataclass(frozen=True, slots=True)
class LimitsTerm:
    """The pod's demand on nodes with and without a CSINode, and what is known of nodes."""

    with_csi_node: Demand
    without_csi_node: Demand
    csi_nodes: CsiColumn
    attachments: AttachmentIndex


class NodeVolumeLimits:
    """Rejects nodes whose CSI drivers could not attach that many volumes.

    Also those that lack a driver which insists on being there.
    """

    name: ClassVar[str] = "NodeVolumeLimits"
    reasons: ClassVar[tuple[Reason, ...]] = (TOO_MANY,)
    depends_on: ClassVar[tuple[Dependency, ...]] = (
        Row("pods/volumes"),
        Object(Kind.PERSISTENT_VOLUME_CLAIM),
        Object(Kind.PERSISTENT_VOLUME),
        Object(Kind.STORAGE_CLASS),
        Object(Kind.CSI_NODE),
        Object(Kind.CSI_DRIVER),
        Object(Kind.VOLUME_ATTACHMENT),
    )

    def __init__(self) -> None:
        self._csi_nodes = CsiNodes()
        self._attachments = Attachments()

    def prepare(self, pod: PodView, rows: RowsView) -> LimitsTerm | Skip:
        """Tell the pod's volumes, in both ways."""
        if not any(
            volume.persistent_volume_claim is not None
            or volume.ephemeral is not None
            or in_tree_plugin(volume) is not None
            for volume in pod.volumes
        ):
            return SKIP
        return LimitsTerm(
            _demand(pod, rows, on_csi_node=True),
            _demand(pod, rows, on_csi_node=False),
            self._csi_nodes.column(rows),
            self._attachments.index(rows),
        )

    def quotas(self, term: LimitsTerm, pods: Departed, rows: RowsView) -> Iterable[Quota] | None:
        """Let all come where the limits would do for each use of each volume."""
        uses = len(pods.by(_volumes).get(_ANY, ()))
        suspects = _suspects(term, rows, uses)
        return () if suspects is None or not suspects.any() else None

    def filter(self, term: LimitsTerm, rows: RowsView) -> Codes:
        """Reject where a driver is missing or its limit would be exceeded."""
        csi_nodes = term.csi_nodes
        codes = rows.passed()
        for demand, lacks in ((term.with_csi_node, False), (term.without_csi_node, True)):
            if demand.is_sound:
                continue
            where = csi_nodes.where(rows, _lacks_all if lacks else _is_there)
            if demand.error is not None and where.any():
                raise StatusError(demand.error)
            if demand.rejection is not None:
                codes[where] = rows.code((demand.rejection,), resolvable=False)
            for driver in demand.insisting:
                lacking = where & csi_nodes.where(rows, _lacks(driver)) & (codes == 0)
                codes[lacking] = rows.code((missing_driver(driver),), resolvable=True)
        suspects = _suspects(term, rows)
        if suspects is not None and (suspects := suspects & (codes == 0)).any():
            codes[_exceeded(term, suspects, rows)] = rows.code((TOO_MANY,), resolvable=True)
        return codes


def _volumes(pod: PodView) -> Iterable[str]:
    """Return the same key for each volume of a pod."""
    return (_ANY for _ in pod.volumes)


def _suspects(term: LimitsTerm, rows: RowsView, more: int = 0) -> Mask | None:
    """Return the rows on which the rough count does not settle it, with so many volumes more.

    None where nothing is limited.
    """
    suspects: Mask | None = None
    for driver, count in Counter(term.with_csi_node.volumes.values()).items():
        if not term.csi_nodes.has_limit(driver):
            continue
        limits = term.csi_nodes.limits(rows, driver)
        limited = limits >= 0
        if not limited.any():
            continue
        if suspects is None:
            suspects = np.zeros(len(rows), dtype=np.bool_)
            bound = rows.count_volumes() + rows.cut(term.attachments.counts)
        suspects |= limited & (bound + more + count > limits)
    return suspects


def _exceeded(term: LimitsTerm, suspects: Mask, rows: RowsView) -> list[int]:
    """Return the positions of the suspects on which a limit would be exceeded."""
    demand = term.with_csi_node
    drivers = sorted(set(demand.volumes.values()))
    limits = {driver: term.csi_nodes.limits(rows, driver).tolist() for driver in drivers}
    row_ids = rows.row_ids
    exceeded = []
    for position in np.flatnonzero(suspects).tolist():
        new, held = _counts(demand, row_ids[position], term.attachments, rows)
        if any(
            0 <= limits[driver][position] < held[driver] + count for driver, count in new.items()
        ):
            exceeded.append(position)
    return exceeded


def _demand(pod: PodView, rows: RowsView, *, on_csi_node: bool) -> Demand:
    try:
        volumes = attachable(pod.volumes, pod, rows, on_csi_node=on_csi_node, must_exist=True)
    except MissingClaimError as error:
        return Demand({}, rejection=missing_claim(str(error)))
    except StatusError as error:
        return Demand({}, error=str(error))
    drivers = sorted(set(volumes.values()))
    return Demand(volumes, tuple(driver for driver in drivers if _insists(driver, rows)))


def _insists(driver: str, rows: RowsView) -> bool:
    found: CsiDriver | None = rows.object(Kind.CSI_DRIVER, "", driver)
    return found is not None and bool(found.spec.prevent_pod_scheduling_if_missing)


def _is_there(facts: CsiFacts | None) -> bool:
    return facts is not None


def _lacks_all(facts: CsiFacts | None) -> bool:
    return facts is None


def _lacks(driver: str) -> Callable[[CsiFacts | None], bool]:
    return lambda facts: facts is None or not facts.has(driver)


def _counts(
    demand: Demand, row: NodeRow, index: AttachmentIndex, rows: RowsView
) -> tuple[Counter[str], Counter[str]]:
    """Return, by driver, how many volumes would be new on a row and how many are there."""
    known, more = rows.attached_volumes(row)
    users = rows.volume_users(row).values() if known is None else more
    used: Attachable = {}
    for user in users:
        used |= attachable(user.volumes, user, rows, on_csi_node=True, must_exist=False)
    held: Counter[str] = Counter()
    if known is not None:
        held.update(known.by_driver)
        used = {name: driver for name, driver in used.items() if name not in known}
    held.update(used.values())

    def is_used(name: str) -> bool:
        return name in used or (known is not None and name in known)

    others = attached(index, rows.name_of(row), rows)
    held.update(driver for name, driver in others.items() if not is_used(name))
    new = Counter(driver for name, driver in demand.volumes.items() if not is_used(name))
    return new, held
