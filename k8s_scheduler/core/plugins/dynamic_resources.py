"""DynamicResources: devices by claim. Not supported yet, so pods that need them are held back.

Filter: a pod with resource claims is rejected before any node is looked at, and so is one that
requests a resource that a DeviceClass stands behind: counting it like any other resource would
place it wrongly. What keeps it back is named; preemption can't help.

Score: 0 on every node, as kube-scheduler's for pods without claims.
"""

from typing import Annotated, ClassVar, Final

import msgspec
import numpy as np

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.config.rules import DURATION, FORMAT, RULE, Range
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.names import is_extended_resource_name
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.dependencies import Dependency, Object
from k8s_scheduler.core.framework.plugin import SKIP, Reject, Same, Skip
from k8s_scheduler.core.framework.preemption import PostFilterResult, UnplacedPod
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView, Scores

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
_FILTER_TIMEOUT: Final = Range(0, None, "must be zero or positive")
_BINDING_TIMEOUT: Final = Range(1, None, "must be at least 1 second")


class DynamicResourcesArgs(PluginArgs, frozen=True):
    """Arguments of DynamicResources; a filter timeout of 0 is none."""

    filter_timeout: Annotated[
        float, msgspec.Meta(extra={FORMAT: DURATION, RULE: _FILTER_TIMEOUT})
    ] = 10.0
    binding_timeout: Annotated[
        float, msgspec.Meta(extra={FORMAT: DURATION, RULE: _BINDING_TIMEOUT})
    ] = 600.0


def claim_unsupported(name: str) -> Reason:
    return Reason(
        code="DynamicResources/ClaimUnsupported",
        text=f'resource claim "{name}": dynamic resource allocation is not supported yet',
    )


def resource_unsupported(resource: str, device_class: str) -> Reason:
    """Return the reason for a resource that a device class stands behind."""
    return Reason(
        code="DynamicResources/ResourceUnsupported",
        text=f'resource "{resource}" of device class "{device_class}": '
        "dynamic resource allocation is not supported yet",
    )


class DynamicResources:
    """Not supported yet: rejects pods that ask for devices, and scores 0.

    These are pods that have resource claims or ask for a resource behind which a DeviceClass
    stands.
    """

    name: ClassVar[str] = "DynamicResources"
    arguments: ClassVar[type[PluginArgs]] = DynamicResourcesArgs
    # Reasons name what the pod asks for; these stand for all of them.
    reasons: ClassVar[tuple[Reason, ...]] = (
        claim_unsupported("<claim>"),
        resource_unsupported("<resource>", "<class>"),
    )
    depends_on: ClassVar[tuple[Dependency, ...]] = (Object(Kind.DEVICE_CLASS),)

    # Filter

    def __init__(self, _args: DynamicResourcesArgs) -> None:
        """Nothing is waited for yet."""

    def prepare(self, pod: PodView, rows: RowsView) -> Skip | Reject:
        """Reject the pod for every claim, and every resource that is a device; others pass."""
        found = [claim_unsupported(name) for name in pod.resource_claims]
        classes = _classes(rows)
        if classes:
            asked = [name for name, _ in pod.requests.amounts if _may_be_device(name)]
            found += [resource_unsupported(n, classes[n]) for n in asked if n in classes]
        return Reject(tuple(found), resolvable=False) if found else SKIP

    def filter(self, term: None, rows: RowsView) -> Codes:
        """Let every row pass: PreFilter has rejected what has to be rejected."""
        return rows.passed()

    def post_filter(self, state: CycleState, pod: Pod, unplaced: UnplacedPod) -> PostFilterResult:
        """Have nothing to give back.

        A pod that was rejected before this plugin was asked ends the search for room: upstream's
        plugin then misses what it would have noted, and says so in these words.
        """
        if self.name not in state.asked:
            raise StatusError("not found")
        return PostFilterResult("")

    # Score

    def pre_score(self, pod: PodView, rows: RowsView) -> Same:
        """Give all nodes 0. Never skips: the score is there, as upstream's."""
        return Same(0)

    def score(self, term: Same, rows: RowsView) -> Scores:
        """Return the same again; it is not asked after `Same`."""
        return np.full(len(rows), term.score, dtype=np.int64)


def _may_be_device(resource: str) -> bool:
    return is_extended_resource_name(resource) or resource.startswith(CLASS_PREFIX)


def _classes(rows: RowsView) -> dict[str, str]:
    """Return resource -> device class; of several classes the first by name."""
    classes: dict[str, str] = {}
    for found in rows.all_objects(Kind.DEVICE_CLASS):
        name = found.metadata.name
        classes.setdefault(CLASS_PREFIX + name, name)
        if found.spec.extended_resource_name:
            classes.setdefault(found.spec.extended_resource_name, name)
    return classes
