"""The one place where an attempt that failed is told to the world.

Event `FailedScheduling` and condition PodScheduled=False, in kube-scheduler's words. The
condition is written only when it says something new: pods of a full cluster must not cost a
write per attempt.
"""

import hashlib

from k8s_scheduler.api.meta import Condition, NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.messages.outgoing import (
    EventType,
    Log,
    PatchCondition,
    RecordEvent,
    Severity,
)
from k8s_scheduler.core.queue.queued_pod import QueuedPod

POD_SCHEDULED = "PodScheduled"


def tell_failure(
    out: Outbox,
    pod: Pod,
    *,
    attempt: int,
    reason: str,
    message: str,
    nominated: NodeName | None = None,
    said: NodeName | None = None,
    is_news: bool = False,
) -> None:
    """Ask for the event and, if it differs from what the pod says already, the condition.

    What the pod says may be older than what was written last: `is_news` if that said otherwise.

    `nominated` goes with the condition: where the pod is promised room, the empty name for a
    promise that is taken back, None to leave that alone. `said` is what the status says of that
    once everything asked for is written; None: what it says now.
    """
    metadata = pod.metadata
    out.append(warn(pod, attempt=attempt, note=message))
    standing = next((c for c in pod.status.conditions or () if c.type == POD_SCHEDULED), None)
    was_false = standing is not None and standing.status == "False"
    if said is None:
        said = NodeName(pod.status.nominated_node_name)
    promise = None if nominated == said else nominated
    told = standing is not None and was_false and _says(standing, pod, reason, message)
    if told and not is_news and promise is None:
        return
    patch = PatchCondition(
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
    out.append(patch)


def digest_of(message: str) -> int:
    """Return a number that stands for a message and is never 0: what a parked pod was told."""
    digest = hashlib.blake2b(message.encode(errors="surrogatepass"), digest_size=7).digest()
    return int.from_bytes(digest, "big") + 1


def tell_exhausted(pod: Pod, *, attempt: int) -> RecordEvent:
    """Return the event of a pod that is not tried again by itself."""
    note = f"failed {attempt} times; tried again when something changes in the cluster"
    return warn(pod, attempt=attempt, note=note, reason="MaxAttemptsReached")


def warn(pod: Pod, *, attempt: int, note: str, reason: str = "FailedScheduling") -> RecordEvent:
    """Return an event that warns of what keeps a pod from being scheduled."""
    return RecordEvent(
        uid=PodUid(pod.metadata.uid),
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        attempt=attempt,
        scheduler_name=pod.spec.scheduler_name,
        type=EventType.WARNING,
        reason=reason,
        action="Scheduling",
        note=note,
    )


def says_so(pod: Pod, reason: str, message: str) -> bool:
    """Return whether the pod's status says already that it was not scheduled, and just this."""
    standing = next((c for c in pod.status.conditions or () if c.type == POD_SCHEDULED), None)
    return (
        standing is not None
        and standing.status == "False"
        and _says(standing, pod, reason, message)
    )


def _says(standing: Condition, pod: Pod, reason: str, message: str) -> bool:
    """Return whether the pod's condition says just this already."""
    return (
        standing.reason == reason
        and standing.message == message
        and (standing.observed_generation or 0) == pod.metadata.generation
    )


def unreadable(kind: str, name: str, error: QuantityError) -> Log:
    """Return the line about a pod or a node that is left out: its amounts can't be read."""
    return Log(Severity.ERROR, f"{kind} left out", {kind: name, "error": str(error)})


def plugin_log(queued: QueuedPod, error: PluginError) -> Log:
    """Return the line about a plugin that raised."""
    metadata = queued.pod.metadata
    return Log(
        Severity.ERROR,
        "plugin failed",
        {
            "plugin": error.plugin,
            "extension_point": error.extension_point,
            "pod": f"{metadata.namespace}/{metadata.name}",
            "attempt": queued.attempts,
            "error": str(error),
        },
    )
