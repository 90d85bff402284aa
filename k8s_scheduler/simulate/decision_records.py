"""One decision as a record: which attempt, what came of it, and what had been seen.

`seen` is by resource the version up to which everything was known when it was decided: the
informer's own, where the recording has it, or the newest object the core had been told of. So
another program that watched the API server can rebuild what was decided on.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from k8s_scheduler.api.meta import NodeName, ObjectMeta, PodUid
from k8s_scheduler.core.messages.checkpoint import Checkpoint
from k8s_scheduler.core.messages.incoming import (
    Message,
    NodeChanged,
    ObjectChanged,
    PodChanged,
    Restore,
)
from k8s_scheduler.kube.resources import NODES, PODS, has_reached


class Decision(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was decided for one attempt at one pod.

    `node` is None where there was none, and `failure` says why. `nominated` is the node that had
    been promised to the pod, which is looked at first. `message` counts within the segment.
    """

    number: int
    segment: str
    message: int
    now: float
    uid: PodUid
    namespace: str
    name: str
    scheduler_name: str
    attempt: int
    node: NodeName | None
    failure: str
    nominated: str | None
    seen: Mapping[str, int]

    def line(self) -> str:
        """Return the decision as a line for people."""
        outcome = self.node if self.node is not None else f"no node: {self.failure}"
        pod = f"{self.namespace}/{self.name}"
        return f"{self.number}  {time_text(self.now)}  {pod}  attempt {self.attempt}  {outcome}"


def time_text(seconds: float) -> str:
    """Return a time as RFC 3339 has it, to the millisecond; as a number if no date has it."""
    try:
        moment = datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, ValueError, OSError):
        # The recording is damaged, or its clock was. That is no reason to show none of it.
        return f"{seconds:g}s"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class SeenVersions:
    """The newest version of each resource, as a recording is gone through."""

    def __init__(self) -> None:
        self._versions: dict[str, str] = {}

    def take(self, message: Message) -> None:
        """Take note of what a message says."""
        match message:
            case PodChanged(pod=pod) if pod is not None:
                self._object(PODS.plural, pod.metadata)
            case NodeChanged(node=node) if node is not None:
                self._object(NODES.plural, node.metadata)
            case ObjectChanged(kind=kind):
                found = message.read()
                # A recording does not say under which name a custom resource is watched: of these
                # it is known only how far informers had come.
                if found is not None and not kind.is_custom:
                    self._object(kind.label, found.metadata)
            case Restore(checkpoint=checkpoint):
                self._all(checkpoint)

    def reach(self, versions: Mapping[str, str]) -> None:
        """Take note of how far informers had come."""
        for resource, version in versions.items():
            self._newest(resource, version)

    def now(self) -> dict[str, int]:
        """Return the versions, by resource in order."""
        return {name: int(self._versions[name]) for name in sorted(self._versions)}

    def _all(self, checkpoint: Checkpoint) -> None:
        for node in checkpoint.nodes:
            if node.node is not None:
                self._object(NODES.plural, node.node.metadata)
        waiting = (q.pod for q in (*checkpoint.queue, *(f.queued for f in checkpoint.in_flight)))
        placed = (entry.pod for entry in checkpoint.pods)
        self._objects(PODS.plural, (pod.metadata for pod in (*placed, *waiting)))
        for entry in checkpoint.objects:
            message = ObjectChanged(0.0, entry.kind, entry.namespace, entry.name, entry.object)
            self.take(message)

    def _objects(self, resource: str, metadata: Iterable[ObjectMeta]) -> None:
        for each in metadata:
            self._object(resource, each)

    def _object(self, resource: str, metadata: ObjectMeta) -> None:
        self._newest(resource, metadata.resource_version)

    def _newest(self, resource: str, version: str) -> None:
        # Only numbers can be compared; anything else says nothing about before and after.
        if has_reached(version, self._versions.get(resource, "1")):
            self._versions[resource] = version
