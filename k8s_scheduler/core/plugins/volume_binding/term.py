"""What binding a pod's volumes comes down to, before any node is looked at.

Bound volumes have a reach, and another one where their in-tree plugin was handed over to CSI.
Waiting claims are matched with existing volumes, smallest claim first, and provisioned where none
is found; claims for which a node was chosen already are provisioned there and nowhere else.
"""

from dataclasses import dataclass, field

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
from k8s_scheduler.api.storage.matching import is_alike, is_kept_for
from k8s_scheduler.api.storage.objects import (
    CsiDriver,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from k8s_scheduler.api.storage.reach import (
    Reach,
    reach_of_affinity,
    reach_of_topologies,
)
from k8s_scheduler.core.framework.helpers.csi_nodes import CsiColumn, CsiFacts, CsiNodes
from k8s_scheduler.core.framework.views.offers import (
    CapacityDemand,
    Choices,
    ClassIndex,
    VolumeDemand,
)
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.plugins.volume_binding.claims import PodClaims


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
class ClaimMatching:
    """A claim and the volumes it can have: those kept for it, then any of the choices.

    All this is as of a `stamp`, which makes terms differ that were made from different volumes.
    `error`: its selector makes no sense.
    """

    claim: PersistentVolumeClaim
    requested_bytes: int
    volumes: ClassIndex | None = None
    stamp: object = None
    kept: tuple[tuple[int, Reach], ...] = ()
    choices: Choices | None = field(default=None, compare=False)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacities from which a claim's volume can be made, as of a stamp."""

    offers: ClassIndex | None = None
    stamp: object = None
    choices: Choices | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Provisioning:
    """Where a claim's volume can be made; no capacity means that no driver keeps account of it."""

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
    matchings: tuple[ClaimMatching, ...]
    provisionings: tuple[Provisioning, ...]


def binding_term(claims: PodClaims, rows: RowsView, csi_nodes: CsiNodes) -> BindingTerm:
    """Return the term of a pod's claims."""
    bound = tuple(_bound_volume(claim, rows) for claim in claims.bound)
    ask_nodes = any(volume is not None and volume.handed_over is not None for volume in bound)
    with_node = [c for c in claims.waiting if selected_node(c) is not None]
    open_claims = [c for c in claims.waiting if selected_node(c) is None]
    open_claims.sort(key=lambda claim: requested_nano(claim) or 0)
    matchings = []
    earlier: dict[str, int] = {}
    for claim in open_claims:
        name = class_of_claim(claim)
        # What earlier claims of the class take may be just what this one would.
        depth = earlier[name] = earlier.get(name, 0) + 1
        matchings.append(_matching(claim, name, depth, rows))
    return BindingTerm(
        bound,
        csi_nodes.column(rows) if ask_nodes else None,
        tuple(NodeName(selected_node(claim) or "") for claim in with_node),
        tuple(matchings),
        tuple(_provisioning(claim, rows) for claim in (*with_node, *open_claims)),
    )


def inputs_of(claims: PodClaims, rows: RowsView) -> tuple[object, ...] | None:
    """Return what the term of waiting claims is made from; None if there are others.

    With the moment, so that what comes out is of use in the same decision alone: there is nothing
    in which it could be stale, also where a node has got a label whose values had no ids before.
    """
    if claims.bound:
        return None
    found: list[object] = [rows.moment]
    for claim in claims.waiting:
        name = class_of_claim(claim)
        known: StorageClass = rows.object(Kind.STORAGE_CLASS, "", name)
        found += (claim, known, _stamp(rows.offers(Kind.PERSISTENT_VOLUME, name)))
        if _is_provisioned(known):
            found.append(rows.object(Kind.CSI_DRIVER, "", known.provisioner))
            found.append(_stamp(rows.offers(Kind.CSI_STORAGE_CAPACITY, known.metadata.name)))
    return tuple(found)


def _stamp(offers: ClassIndex | None) -> object:
    return None if offers is None else offers.stamp


def _is_provisioned(known: StorageClass) -> bool:
    return known.provisioner not in ("", NO_PROVISIONER)


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
    claim: PersistentVolumeClaim, class_name: str, depth: int, rows: RowsView
) -> ClaimMatching:
    size_nano = requested_nano(claim) or 0
    requested = whole(size_nano)
    volumes = rows.offers(Kind.PERSISTENT_VOLUME, class_name)
    try:
        requirements = requirements_of(claim.spec.selector)
    except SelectorError as error:
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        text = f"error creating internal label selector for claim: {key}: {error}"
        return ClaimMatching(claim, requested, error=text)
    if volumes is None:
        return ClaimMatching(claim, requested)
    demand = VolumeDemand.of(claim, size_nano, requirements)
    return ClaimMatching(
        claim,
        requested,
        volumes,
        volumes.stamp,
        _kept_for(claim, size_nano, volumes),
        rows.choices(volumes, demand, depth),
    )


def _kept_for(
    claim: PersistentVolumeClaim, size_nano: int, volumes: ClassIndex
) -> tuple[tuple[int, Reach], ...]:
    """Return slot and reach of the volumes kept for a claim that can serve it, by name."""
    metadata = claim.metadata
    return tuple(
        (slot, reach_of_affinity(offer.thing.spec.node_affinity))
        for slot, offer in volumes.kept_for(metadata.namespace, metadata.name)
        if offer.size >= size_nano
        and is_kept_for(offer.thing, claim)
        and is_alike(offer.thing, claim)
        and offer.thing.metadata.deletion_timestamp is None
    )


def _provisioning(claim: PersistentVolumeClaim, rows: RowsView) -> Provisioning:
    # A claim waits only if its class is there.
    found: StorageClass = rows.object(Kind.STORAGE_CLASS, "", class_of_claim(claim))
    size_nano = requested_nano(claim)
    supported = _is_provisioned(found)
    capacity = None
    if supported and size_nano is not None and _keeps_account(found.provisioner, rows):
        capacity = _capacity(found.metadata.name, whole(size_nano), rows)
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


def _capacity(class_name: str, size_bytes: int, rows: RowsView) -> Capacity:
    offers = rows.offers(Kind.CSI_STORAGE_CAPACITY, class_name)
    if offers is None:
        return Capacity()
    return Capacity(offers, offers.stamp, rows.choices(offers, CapacityDemand(size_bytes), 1))
