"""The one place where an attempt that failed is told to the world.

Event `FailedScheduling` and condition PodScheduled=False, in kube-scheduler's words. The
condition is written only when it says something new: pods of a full cluster must not cost a
write per attempt.
"""

from collections.abc import Iterator

from k8s_scheduler.api.meta import Condition, NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.messages.outgoing import (
    EventType,
    Instruction,
    PatchCondition,
    RecordEvent,
)

POD_SCHEDULED = "PodScheduled"


def tell_failure(
    pod: Pod,
    *,
    attempt: int,
    reason: str,
    message: str,
    nominated: NodeName | None = None,
    said: NodeName | None = None,
) -> Iterator[Instruction]:
    """Yield the event and, if it differs from what the pod says already, the condition.

    `nominated` goes with the condition: where the pod is promised room, the empty name for a
    promise that is taken back, None to leave that alone. `said` is what the status says of that
    once everything asked for is written; None: what it says now.
    """
    metadata = pod.metadata
    yield warn(pod, attempt=attempt, note=message)
    standing = next((c for c in pod.status.conditions or () if c.type == POD_SCHEDULED), None)
    was_false = standing is not None and standing.status == "False"
    if said is None:
        said = NodeName(pod.status.nominated_node_name)
    promise = None if nominated == said else nominated
    told = standing is not None and was_false and _says(standing, pod, reason, message)
    if told and promise is None:
        return
    yield PatchCondition(
        uid=PodUid(metadata.uid),
        namespace=metadata.namespace,
        name=metadata.name,
        attempt=attempt,
        reason=reason,
        message=message,
        observed_generation=metadata.generation,
        last_transition_time=standing.last_transition_time if standing and was_false else None,
        nominated_node_name=promise,
    )


def tell_exhausted(pod: Pod, *, attempt: int) -> RecordEvent:
    """Return the event of a pod that is not tried again by itself."""
    return RecordEvent(
        uid=PodUid(pod.metadata.uid),
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        attempt=attempt,
        scheduler_name=pod.spec.scheduler_name,
        type=EventType.WARNING,
        reason="MaxAttemptsReached",
        action="Scheduling",
        note=f"failed {attempt} times; tried again when something changes in the cluster",
    )


def warn(pod: Pod, *, attempt: int, note: str) -> RecordEvent:
    """Return the event of a failed attempt."""
    return RecordEvent(
        uid=PodUid(pod.metadata.uid),
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        attempt=attempt,
        scheduler_name=pod.spec.scheduler_name,
        type=EventType.WARNING,
        reason="FailedScheduling",
        action="Scheduling",
        note=note,
    )


def _says(standing: Condition, pod: Pod, reason: str, message: str) -> bool:
    """Return whether the pod's condition says just this already."""
    return (
        standing.reason == reason
        and standing.message == message
        and (standing.observed_generation or 0) == pod.metadata.generation
    )
