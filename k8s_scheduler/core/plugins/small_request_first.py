"""SmallRequestFirst: among equally important pods, those that ask for little go first.

QueueSort, in place of PrioritySort. Many small pods are placed while a large one would still be
looked at, so the middle of the queue waits less. Size is the larger of two shares: of cpu in whole
cores, and of memory in units of 4 GiB. Ageing: a pod waits behind smaller ones that came later by
at most `ageingSeconds`, the longer the larger it is, so large pods don't starve. Equal sizes go by
the time they entered.
"""

from typing import Annotated, ClassVar, Final

import msgspec

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.config.rules import RULE, Int64, Range
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.api.resources import CPU, MEMORY, pod_requests
from k8s_scheduler.core.framework.dependencies import Dependency
from k8s_scheduler.core.framework.reasons import Reason

_CORE_MILLI: Final = 1000
_MEMORY_UNIT: Final = 4 * 1024**3
_SECONDS: Final = Range(0, None, "not in valid range [0, inf)")


class SmallRequestFirstArgs(PluginArgs, frozen=True):
    """Arguments of SmallRequestFirst: how long a large pod may wait behind small ones."""

    ageing_seconds: Annotated[Int64, msgspec.Meta(extra={RULE: _SECONDS})] = 60


class SmallRequestFirst:
    """Higher priority first; among equals those that ask for little, with ageing.

    Ours, in place of PrioritySort.
    """

    name: ClassVar[str] = "SmallRequestFirst"
    arguments: ClassVar[type[PluginArgs]] = SmallRequestFirstArgs
    reasons: ClassVar[tuple[Reason, ...]] = ()
    depends_on: ClassVar[tuple[Dependency, ...]] = ()

    def __init__(self, args: SmallRequestFirstArgs) -> None:
        """Take how long the largest pods wait."""
        self._ageing_seconds = float(args.ageing_seconds)

    def sort_key(self, pod: Pod, timestamp: float) -> tuple[float, ...]:
        """Return the time by which the pod has done its waiting for smaller ones."""
        share = _share(pod)
        patience = self._ageing_seconds * share / (1 + share)
        return (-(pod.spec.priority or 0), timestamp + patience)


def _share(pod: Pod) -> float:
    """Return the larger share; a pod that can't be read is found out when it is tried."""
    try:
        requests = pod_requests(pod)
    except QuantityError:
        return 0.0
    return max(requests.amount(CPU) / _CORE_MILLI, requests.amount(MEMORY) / _MEMORY_UNIT)
