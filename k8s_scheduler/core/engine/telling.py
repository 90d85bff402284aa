"""What users are told of a pod: events, and the condition PodScheduled=False.

In kube-scheduler's words. The condition is written only when it says something new: pods of a full
cluster must not cost a write per attempt.
"""

import hashlib

from k8s_scheduler.api.meta import Condition, NodeName, key_of
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.engine.preemptions import OngoingPreemption
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.messages.outgoing import (
    EventType,
    Log,
    PatchCondition,
    PodReference,
    RecordEvent,
    Severity,
    attempt_at,
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
    out.append(warn(pod, attempt=attempt, note=message))
    standing = _not_scheduled(pod)
    if said is None:
        said = NodeName(pod.status.nominated_node_name)
    promise = None if nominated == said else nominated
    if says_so(pod, reason, message) and not is_news and promise is None:
        return
    patch = PatchCondition(
        **attempt_at(pod, attempt),
        reason=reason,
        message=message,
        observed_generation=pod.metadata.generation,
        last_transition_time=standing.last_transition_time if standing else None,
        nominated_node_name=promise,
    )
    out.append(patch)


def tell_success(pod: Pod, *, attempt: int, node: NodeName) -> RecordEvent:
    return RecordEvent(
        **attempt_at(pod, attempt),
        scheduler_name=pod.spec.scheduler_name,
        type=EventType.NORMAL,
        reason="Scheduled",
        action="Binding",
        note=f"Successfully assigned {key_of(pod.metadata)} to {node}",
    )


def tell_victim(
    victim: PodReference, preemption: OngoingPreemption, suffix: str = ""
) -> RecordEvent:
    """Return the event that tells a victim why it goes; its reader may not know the other pod."""
    return RecordEvent(
        uid=victim.uid,
        namespace=victim.namespace,
        name=victim.name,
        attempt=preemption.attempt,
        scheduler_name=preemption.scheduler_name,
        type=EventType.NORMAL,
        reason="Preempted",
        action="Preempting",
        note=f"Preempted by pod {preemption.uid} on node {preemption.node}{suffix}",
        related=preemption.pod,
    )


def digest_of(message: str) -> int:
    """Return a number that stands for a message and is never 0: what a parked pod was told."""
    digest = hashlib.blake2b(message.encode(errors="surrogatepass"), digest_size=7).digest()
    return int.from_bytes(digest, "big") + 1


def tell_exhausted(pod: Pod, *, attempt: int) -> RecordEvent:
    note = f"failed {attempt} times; tried again when something changes in the cluster"
    return warn(pod, attempt=attempt, note=note, reason="MaxAttemptsReached")


def warn(pod: Pod, *, attempt: int, note: str, reason: str = "FailedScheduling") -> RecordEvent:
    return RecordEvent(
        **attempt_at(pod, attempt),
        scheduler_name=pod.spec.scheduler_name,
        type=EventType.WARNING,
        reason=reason,
        action="Scheduling",
        note=note,
    )


def says_so(pod: Pod, reason: str, message: str) -> bool:
    """Return whether the pod's status says already that it was not scheduled, and just this."""
    standing = _not_scheduled(pod)
    return (
        standing is not None
        and standing.reason == reason
        and standing.message == message
        and (standing.observed_generation or 0) == pod.metadata.generation
    )


def _not_scheduled(pod: Pod) -> Condition | None:
    conditions = pod.status.conditions or ()
    found = next((c for c in conditions if c.type == POD_SCHEDULED), None)
    return None if found is None or found.status != "False" else found


def unreadable(kind: str, name: str, error: QuantityError) -> Log:
    """Return the line about a pod or a node that is left out: its amounts can't be read."""
    return Log(Severity.ERROR, f"{kind} left out", {kind: name, "error": str(error)})


def plugin_log(queued: QueuedPod, error: PluginError) -> Log:
    return Log(
        Severity.ERROR,
        "plugin failed",
        {
            "plugin": error.plugin,
            "extension_point": error.extension_point,
            "pod": key_of(queued.pod.metadata),
            "attempt": queued.attempts,
            "error": str(error),
        },
    )
