"""What binding a pod's volumes comes down to, before any node is looked at.

Bound volumes have a reach, and another one where their in-tree plugin was handed over to CSI.
Waiting claims are matched with existing volumes, smallest claim first, and provisioned where none
is found; claims for which a node was chosen already are provisioned there and nowhere else.
"""

from dataclasses import dataclass

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.quantity import whole
from k8s_scheduler.api.selectors.labels import SelectorError, requirements_of
from k8s_scheduler.api.storage.claims import (
    NO_PROVISIONER,
    class_of_claim,
    requested_nano,
    selected_node,
)
from k8s_scheduler.api.storage.csi_translation import (
    TranslationError,
    in_tree_plugin,
    translated_affinity,
)
from k8s_scheduler.api.storage.objects import (
    CsiDriver,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from k8s_scheduler.core.framework.helpers.csi_nodes import CsiColumn, CsiFacts, CsiNodes
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.plugins.volume_binding.claims import PodClaims
from k8s_scheduler.core.plugins.volume_binding.ranking import Choices
from k8s_scheduler.core.plugins.volume_binding.reach import (
    Reach,
    reach_of_affinity,
    reach_of_topologies,
)
from k8s_scheduler.core.plugins.volume_binding.stock import ClassCapacities, ClassVolumes, Stock


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A bound volume on nodes where its in-tree plugin was handed over: its reach, or an error."""

    plugin: str
    reach: Reach | None
    error: str = ""

    def on(self, facts: CsiFacts | None) -> bool:
        """Return whether nodes with these facts have handed it over."""
        return facts is not None and self.plugin in facts.migrated


@dataclass(frozen=True, slots=True)
class BoundVolume:
    """The volume of a bound claim."""

    reach: Reach
    handed_over: HandedOver | None


@dataclass(frozen=True, slots=True)
class Matching:
    """A claim and the volumes it can have: those kept for it, then any of the choices.

    `error`: its selector makes no sense.
    """

    claim: PersistentVolumeClaim
    requested_bytes: int
    stock: ClassVolumes | None
    kept: tuple[tuple[int, Reach], ...] = ()
    choices: Choices | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacities from which a claim's volume can be made."""

    stock: ClassCapacities | None
    choices: Choices | None


@dataclass(frozen=True, slots=True)
class Provisioning:
    """Where a claim's volume can be made; no capacity means that nobody keeps account of it."""

    claim: PersistentVolumeClaim
    class_name: str
    requested_bytes: int
    supported: bool
    reach: Reach
    capacity: Capacity | None


@dataclass(frozen=True, slots=True)
class BindingTerm:
    """A pod's volumes; None among the bound is one that does not exist.

    `csi_nodes` is there if it matters which of the nodes have handed plugins over. `provisionings`
    are in the order in which they are tried: claims with a node first, then those of `matchings`,
    in the same order.
    """

    bound: tuple[BoundVolume | None, ...]
    csi_nodes: CsiColumn | None
    chosen_nodes: tuple[NodeName, ...]
    matchings: tuple[Matching, ...]
    provisionings: tuple[Provisioning, ...]


def binding_term(
    claims: PodClaims, rows: RowsView, stock: Stock, csi_nodes: CsiNodes
) -> BindingTerm:
    """Return the term of a pod's claims."""
    bound = tuple(_bound_volume(claim, rows) for claim in claims.bound)
    ask_nodes = any(volume is not None and volume.handed_over is not None for volume in bound)
    with_node = [c for c in claims.waiting if selected_node(c) is not None]
    open_claims = [c for c in claims.waiting if selected_node(c) is None]
    open_claims.sort(key=lambda claim: requested_nano(claim) or 0)
    names = [class_of_claim(claim) for claim in open_claims]
    shelves = {name: stock.volumes(name, rows) for name in dict.fromkeys(names)}
    matchings = []
    for position, claim in enumerate(open_claims):
        name = names[position]
        # What earlier claims of the class take may be just what this one would.
        depth = names[:position].count(name) + 1
        matchings.append(_matching(claim, shelves[name], depth, rows))
    return BindingTerm(
        bound,
        csi_nodes.column(rows) if ask_nodes else None,
        tuple(NodeName(selected_node(claim) or "") for claim in with_node),
        tuple(matchings),
        tuple(_provisioning(claim, rows, stock) for claim in (*with_node, *open_claims)),
    )


def _bound_volume(claim: PersistentVolumeClaim, rows: RowsView) -> BoundVolume | None:
    volume: PersistentVolume | None = rows.object(
        Kind.PERSISTENT_VOLUME, "", claim.spec.volume_name
    )
    if volume is None:
        return None
    reach = reach_of_affinity(volume.spec.node_affinity)
    plugin = in_tree_plugin(volume.spec)
    if plugin is None or not plugin.migrated:
        return BoundVolume(reach, None)
    try:
        translated = reach_of_affinity(translated_affinity(volume, plugin))
    except TranslationError as error:
        return BoundVolume(reach, HandedOver(plugin.name, None, f"could not translate pv: {error}"))
    if translated.key == reach.key:
        return BoundVolume(reach, None)
    return BoundVolume(reach, HandedOver(plugin.name, translated))


def _matching(
    claim: PersistentVolumeClaim, stock: ClassVolumes | None, depth: int, rows: RowsView
) -> Matching:
    size_nano = requested_nano(claim) or 0
    requested = whole(size_nano)
    try:
        requirements = requirements_of(claim.spec.selector)
    except SelectorError as error:
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        text = f"error creating internal label selector for claim: {key}: {error}"
        return Matching(claim, requested, stock, error=text)
    if stock is None:
        return Matching(claim, requested, None)
    suitable = stock.suitable(claim, size_nano, requirements)
    return Matching(
        claim,
        requested,
        stock,
        stock.kept_for(claim, size_nano),
        stock.ranking.choices(suitable, depth, rows),
    )


def _provisioning(claim: PersistentVolumeClaim, rows: RowsView, stock: Stock) -> Provisioning:
    # A claim waits only if its class is there.
    found: StorageClass = rows.object(Kind.STORAGE_CLASS, "", class_of_claim(claim))
    size_nano = requested_nano(claim)
    supported = found.provisioner not in ("", NO_PROVISIONER)
    capacity = None
    if supported and size_nano is not None and _keeps_account(found.provisioner, rows):
        capacity = _capacity(found.metadata.name, whole(size_nano), rows, stock)
    return Provisioning(
        claim,
        found.metadata.name,
        whole(size_nano or 0),
        supported,
        reach_of_topologies(found.allowed_topologies),
        capacity,
    )


def _keeps_account(provisioner: str, rows: RowsView) -> bool:
    """Return whether a provisioner is a driver that reports its capacity."""
    found: CsiDriver | None = rows.object(Kind.CSI_DRIVER, "", provisioner)
    return found is not None and bool(found.spec.storage_capacity)


def _capacity(class_name: str, size_bytes: int, rows: RowsView, stock: Stock) -> Capacity:
    found = stock.capacities(class_name, rows)
    if found is None:
        return Capacity(None, None)
    return Capacity(found, found.ranking.choices(found.sufficient(size_bytes), 1, rows))
