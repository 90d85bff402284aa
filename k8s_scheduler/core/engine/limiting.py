"""Keeps what one object can cost within limits: `podLimits` and `nodeLimits` (`api.config.limits`).

A pending pod past a limit never becomes a candidate: the queue holds it as it holds any gated pod,
and no view, term or shape of it is worked out. It is told by the next `Schedule`, so a standby,
which is never asked to schedule, tells nothing. A placed pod or a node counts with what is within
(`api.within_limits`); that is logged once per namespace or node, and shown by metrics.

Which pods were told what is part of checkpoints; everything else here follows from the objects.
"""

from itertools import islice
from typing import Final

from k8s_scheduler.api.config.limits import Excess, NodeLimits, PodLimits
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.pod_counts import excess_text, pod_excess
from k8s_scheduler.api.within_limits import node_within, placed_within
from k8s_scheduler.core.engine.metering.limit_meter import LimitMeter
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.engine.telling import says_so, tell_failure
from k8s_scheduler.core.framework.status import UNSCHEDULABLE
from k8s_scheduler.core.messages.checkpoint import OverLimitEntry
from k8s_scheduler.core.messages.outgoing import Log, Severity
from k8s_scheduler.core.queue.queued_pod import QueuedPod, QueuePlace
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue

# Pods that one message tells.
_TOLD_AT_ONCE: Final = 16


class OverLimitError(Exception):
    """A pod is past a limit and is not judged."""


class Limiting:
    """Applies the limits in force."""

    def __init__(
        self,
        pod_limits: PodLimits,
        node_limits: NodeLimits,
        *,
        meter: LimitMeter,
        out: Outbox,
    ) -> None:
        self.pod_limits = pod_limits
        self.node_limits = node_limits
        self._meter = meter
        self._out = out
        # Pending pods past a limit; of these, the ones of which something may have to be told.
        self._held: dict[PodUid, tuple[Excess, ...]] = {}
        self._untold: dict[PodUid, None] = {}
        self._told: dict[PodUid, str] = {}
        # Placed pods of which a part does not count, with their namespaces; how many by namespace.
        self._placed: dict[PodUid, tuple[str, tuple[Excess, ...]]] = {}
        self._namespaces: dict[str, int] = {}
        self._nodes: dict[NodeName, tuple[Excess, ...]] = {}

    def reconfigure(self, pod_limits: PodLimits, node_limits: NodeLimits) -> bool:
        """Apply other limits; return whether those of pods are others than before."""
        changed = pod_limits != self.pod_limits
        self.pod_limits, self.node_limits = pod_limits, node_limits
        return changed

    # Pending pods

    def is_over(self, pod: Pod) -> bool:
        """Return whether a pending pod has to wait; if so, it will be told why."""
        found = pod_excess(pod, self.pod_limits)
        uid = PodUid(pod.metadata.uid)
        if found:
            self._held[uid] = found
            self._untold[uid] = None
        elif self._held:
            self._forget_held(uid)
        return bool(found)

    def check(self, pod: Pod) -> None:
        """Raise OverLimitError if a pod is past a limit; nothing is noted."""
        found = pod_excess(pod, self.pod_limits)
        if found:
            raise OverLimitError(excess_text(found))

    @property
    def has_untold(self) -> bool:
        return bool(self._untold)

    def tell(self, queue: SchedulingQueue) -> None:
        """Tell some of the pods that are held, unless they say so already."""
        for uid in list(islice(self._untold, _TOLD_AT_ONCE)):
            del self._untold[uid]
            queued, found = queue.get(uid), self._held.get(uid)
            if queued is not None and queued.place is QueuePlace.GATED and found:
                self._tell(queued, excess_text(found))

    def _tell(self, queued: QueuedPod, text: str) -> None:
        if self._told.get(queued.uid) == text:
            return
        self._told[queued.uid] = text
        if not says_so(queued.pod, UNSCHEDULABLE, text):
            tell_failure(
                self._out, queued.pod, attempt=queued.attempts, reason=UNSCHEDULABLE, message=text
            )

    def _forget_held(self, uid: PodUid) -> None:
        for known in (self._held, self._untold, self._told):
            known.pop(uid, None)

    # Placed pods

    def placed(self, pod: Pod) -> Pod:
        counted, found = placed_within(pod, self.pod_limits)
        uid, namespace = PodUid(pod.metadata.uid), pod.metadata.namespace
        if not found:
            self.left(uid)
            return pod
        if uid not in self._placed:
            before = self._namespaces.get(namespace, 0)
            self._namespaces[namespace] = before + 1
            if not before:
                self._log("pod", f"{namespace}/{pod.metadata.name}", found)
        self._placed[uid] = (namespace, found)
        return counted

    def left(self, uid: PodUid) -> None:
        namespace, _ = self._placed.pop(uid, ("", ()))
        if namespace:
            self._namespaces[namespace] -= 1
            if not self._namespaces[namespace]:
                del self._namespaces[namespace]

    # Nodes

    def node(self, node: Node) -> Node:
        counted, found = node_within(node, self.node_limits)
        name = NodeName(node.metadata.name)
        if found:
            if name not in self._nodes:
                self._log("node", name, found)
            self._nodes[name] = found
        elif self._nodes:
            self._nodes.pop(name, None)
        return counted

    def node_left(self, name: NodeName) -> None:
        self._nodes.pop(name, None)

    def _log(self, kind: str, name: str, found: tuple[Excess, ...]) -> None:
        fields: dict[str, str | int] = {kind: name, "has": "; ".join(map(str, found))}
        self._out.remark(Log(Severity.WARNING, f"{kind} counts only with what is within", fields))

    # Metrics and checkpoints

    def measure(self, queue: SchedulingQueue) -> None:
        """Show how many objects are past which limit, and forget pods that are gone."""
        for uid in [uid for uid in self._held if queue.get(uid) is None]:
            self._forget_held(uid)
        self._meter.show(
            pending=self._held.values(),
            placed=[found for _, found in self._placed.values()],
            nodes=self._nodes.values(),
        )

    def entries(self) -> tuple[OverLimitEntry, ...]:
        return tuple(OverLimitEntry(uid, text) for uid, text in self._told.items())

    def restore(self, entries: tuple[OverLimitEntry, ...], queue: SchedulingQueue) -> None:
        """Know what a checkpoint knew; the queue is restored before."""
        self._told = {entry.uid: entry.text for entry in entries}
        for queued in queue:
            if queued.place is QueuePlace.GATED:
                self.is_over(queued.pod)
