"""How a pod that was bound is told to the world."""

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.messages.outgoing import EventType, RecordEvent


def tell_success(pod: Pod, *, attempt: int, node: NodeName) -> RecordEvent:
    """Return the event of a pod that was bound."""
    metadata = pod.metadata
    return RecordEvent(
        uid=PodUid(metadata.uid),
        namespace=metadata.namespace,
        name=metadata.name,
        attempt=attempt,
        scheduler_name=pod.spec.scheduler_name,
        type=EventType.NORMAL,
        reason="Scheduled",
        action="Binding",
        note=f"Successfully assigned {metadata.namespace}/{metadata.name} to {node}",
    )
