"""PrioritySort: higher priority first, then the pod that has waited longer in the queue."""

from typing import ClassVar

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.dependencies import Dependency
from k8s_scheduler.core.framework.reasons import Reason


class PrioritySort:
    """Higher priority first, then the pod that entered the queue earlier."""

    name: ClassVar[str] = "PrioritySort"
    reasons: ClassVar[tuple[Reason, ...]] = ()
    depends_on: ClassVar[tuple[Dependency, ...]] = ()

    def sort_key(self, pod: Pod, timestamp: float) -> tuple[float, ...]:
        """Return (-priority, time of entry); no priority counts as 0."""
        return (-(pod.spec.priority or 0), timestamp)
