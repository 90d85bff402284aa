"""SchedulingGates: a pod with gates stays out of the queue until the last one is removed."""

from typing import ClassVar

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.dependencies import Dependency
from k8s_scheduler.core.framework.reasons import Reason


class SchedulingGates:
    """Keeps a pod out of the queue until the last of its `spec.schedulingGates` is removed."""

    name: ClassVar[str] = "SchedulingGates"
    reasons: ClassVar[tuple[Reason, ...]] = ()
    depends_on: ClassVar[tuple[Dependency, ...]] = ()

    def pre_enqueue(self, pod: Pod) -> str | None:
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]"
