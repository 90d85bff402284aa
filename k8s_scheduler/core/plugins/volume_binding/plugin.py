"""VolumeBinding: a pod goes where its volumes can be reached, found or made.

Filter: bound volumes must be within reach of the node. Claims that wait for their pod get the
smallest free volume that suits them and is within reach, or one is made, if their class can do
that for the node and the driver has room for it. Preemption can't help: volumes outlive pods.

Score. Assumption: storage is spread rather than filled up, unless the shape says otherwise.
Formula: for each class the utilisation (requested of the volumes found; where none is found,
requested of the driver's capacity on the node) through the shape, and the mean over the classes.
Ties are left to the engine; among equal volumes and capacities the name decides.
"""

from typing import Annotated, ClassVar, Final, Self

import msgspec
import numpy as np

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.config.field_errors import FieldError, FieldPath
from k8s_scheduler.api.config.rules import RULE, Int64, Range
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.dependencies import Dependency, Object, Row
from k8s_scheduler.core.framework.evaluation.remembered import Remembered
from k8s_scheduler.core.framework.helpers.csi_nodes import CsiNodes
from k8s_scheduler.core.framework.plugin import (
    SKIP,
    PreBinding,
    Reject,
    Reservation,
    Same,
    Skip,
)
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView, Scores
from k8s_scheduler.core.plugins.resource_arguments import (
    UtilizationShapePoint,
    along_shape,
    shape_rules,
)
from k8s_scheduler.core.plugins.volume_binding.binding import (
    Plan,
    assumed_objects,
    is_done,
    patches,
    plan_of,
)
from k8s_scheduler.core.plugins.volume_binding.claims import (
    UNBOUND_IMMEDIATE,
    PodClaims,
    claims_of,
)
from k8s_scheduler.core.plugins.volume_binding.matching import PodVolumes, find, volumes_on
from k8s_scheduler.core.plugins.volume_binding.score import ClassScorer
from k8s_scheduler.core.plugins.volume_binding.term import BindingTerm, binding_term, inputs_of

OUT_OF_REACH = Reason(
    code="VolumeBinding/OutOfReach",
    text="node(s) didn't match PersistentVolume's node affinity",
)
NO_VOLUME = Reason(
    code="VolumeBinding/NoVolume",
    text="node(s) didn't find available persistent volumes to bind",
)
NO_SPACE = Reason(code="VolumeBinding/NoSpace", text="node(s) did not have enough free storage")
MISSING_VOLUME = Reason(
    code="VolumeBinding/MissingVolume",
    text="node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)

# The order in which kube-scheduler names them.
_REASONS: Final = (OUT_OF_REACH, NO_VOLUME, NO_SPACE, MISSING_VOLUME)
_BIND_TIMEOUT: Final = Range(0, None, "invalid BindTimeoutSeconds, should not be a negative value")


class VolumeBindingArgs(PluginArgs, frozen=True):
    """Arguments of VolumeBinding. No shape: 10 for an empty volume, 0 for a full one."""

    bind_timeout_seconds: Annotated[Int64, msgspec.Meta(extra={RULE: _BIND_TIMEOUT})] = 600
    shape: tuple[UtilizationShapePoint, ...] = ()

    def completed(self) -> Self:
        """Prefer empty volumes where no shape is given."""
        shape = self.shape or (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
        return msgspec.structs.replace(self, shape=shape)

    def broken_rules(self, path: FieldPath) -> list[FieldError]:
        """Check the shape."""
        return shape_rules(self.shape, (*path, "shape"))


class VolumeBinding:
    """Rejects nodes without the pod's volumes, and prefers by how much of the storage is used.

    Bound volumes must be within reach; waiting claims must find a volume, or a driver with room to
    make one. The score follows `shape`. Reserves the volumes it found, writes which claim gets
    which and where others are to be made, and waits until all claims are bound
    (`bindTimeoutSeconds`).
    """

    name: ClassVar[str] = "VolumeBinding"
    arguments: ClassVar[type[PluginArgs]] = VolumeBindingArgs
    reasons: ClassVar[tuple[Reason, ...]] = (*_REASONS, UNBOUND_IMMEDIATE)
    depends_on: ClassVar[tuple[Dependency, ...]] = (
        Row("label/"),
        Object(Kind.PERSISTENT_VOLUME_CLAIM),
        Object(Kind.PERSISTENT_VOLUME),
        Object(Kind.STORAGE_CLASS),
        Object(Kind.CSI_NODE),
        Object(Kind.CSI_DRIVER),
        Object(Kind.CSI_STORAGE_CAPACITY),
    )
    writes: ClassVar[tuple[Kind, ...]] = (Kind.PERSISTENT_VOLUME, Kind.PERSISTENT_VOLUME_CLAIM)
    only_prepared: ClassVar[bool] = True

    def __init__(self, args: VolumeBindingArgs) -> None:
        """Take how long binding may last, and the shape of scores."""
        self._csi_nodes = CsiNodes()
        self._made: Remembered[BindingTerm] = Remembered()
        self._timeout_seconds = float(args.bind_timeout_seconds)
        self._scorer = ClassScorer(along_shape(args.shape))

    def prepare(self, pod: PodView, rows: RowsView) -> BindingTerm | Skip | Reject:
        """Sort out the pod's claims; some of them end it right here."""
        claims = claims_of(pod, rows)
        if claims is None:
            return SKIP
        if isinstance(claims, Reason):
            return Reject((claims,), resolvable=False)
        return self._term(claims, rows)

    def _term(self, claims: PodClaims, rows: RowsView) -> BindingTerm:
        """Return the term of a pod's claims: PreScore asks for the one of PreFilter once more.

        It is the same one as long as all that it was made from is the very same; `inputs_of` reads
        all of that each time, so that it is taken down.
        """
        inputs = inputs_of(claims, rows)
        if inputs is None:
            return binding_term(claims, rows, self._csi_nodes)
        return self._made.get(inputs, lambda: binding_term(claims, rows, self._csi_nodes))

    def filter(self, term: BindingTerm, rows: RowsView) -> Codes:
        found = find(term, rows)
        masks = (found.out_of_reach, found.no_volume, found.no_space, found.missing)
        wrong = [(m, r) for m, r in zip(masks, _REASONS, strict=True) if m is not None]
        if len(wrong) == 1:
            return rows.where(*wrong[0], resolvable=False)
        # One bit for each reason; what is wrong with nodes is the same for most of them.
        bits = np.zeros(len(rows), dtype=np.int64)
        for position, (mask, _) in enumerate(wrong):
            bits |= mask.astype(np.int64) << position
        codes = rows.passed()
        for combination in np.unique(bits[bits > 0]).tolist():
            reasons = tuple(r for i, (_, r) in enumerate(wrong) if combination >> i & 1)
            codes[bits == combination] = rows.code(reasons, resolvable=False)
        return codes

    def pre_score(self, pod: PodView, rows: RowsView) -> BindingTerm | Same:
        """Take the claims that wait; all other pods score nothing, but are scored."""
        claims = claims_of(pod, rows)
        if not isinstance(claims, PodClaims) or not claims.waiting:
            return Same(0)
        return self._term(PodClaims((), claims.waiting), rows)

    def score(self, term: BindingTerm, rows: RowsView) -> Scores:
        return self._scorer.score(term, rows)

    def volumes_on(self, term: BindingTerm, row: RowsView) -> PodVolumes:
        """Return what is to be bound and provisioned for the pod on the one row in view."""
        return volumes_on(term, row)

    def reserve(self, state: CycleState, pod: Pod, rows: RowsView) -> Reservation | None:
        """Take the volumes that were found, and the right to have others made."""
        term: BindingTerm | None = state.terms.get(self.name)
        if term is None:
            return None
        node = rows.name_of(rows.row_ids[0])
        volumes = self.volumes_on(term, rows)
        if not volumes.bindings and not volumes.provisions:
            return None
        state.write(self.name, plan_of(volumes, node).note())
        return Reservation(tuple(assumed_objects(volumes, node)))

    def unreserve(self, state: CycleState, pod: Pod) -> None:
        """Forget what was to be done; the engine gives the objects back."""
        state.delete(self.name)

    def pre_bind(self, state: CycleState, pod: Pod, rows: RowsView) -> PreBinding | None:
        """Write which volume is whose, and where others are to be made."""
        note = state.notes.get(self.name)
        if note is None:
            return None
        written = tuple(patches(Plan.read(note), rows))
        return PreBinding(written, self._timeout_seconds, errand="binding volumes")

    def pre_bound(self, state: CycleState, pod: Pod, rows: RowsView) -> bool:
        """Return whether all claims are bound."""
        return is_done(Plan.read(state.read(self.name)), rows)
