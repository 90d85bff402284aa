"""Claims and local volumes for `core_speed`, and who binds them: the API server and the controller.

A pod sets out once it is decided on; its volume is written for its claim, and then bound, when so
many others have set out that the controller is as far behind as it is in a real cluster. All that
the core does about it counts as part of the decision; making the objects does not.
"""

import time
from collections import deque
from typing import Any, Final

import msgspec

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.core.engine.decision.cycle import Placement
from k8s_scheduler.core.engine.pods.in_flight import InFlightPod
from k8s_scheduler.core.messages.incoming import BindResult, Message, ObjectChanged, RequestResult
from k8s_scheduler.core.messages.outgoing import Bind, Instruction, PatchObject
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.scheduler import Scheduler
from tests.bench.workloads import HOST, Raw, plain
from tests.inside import inside

# As many pods wait for their volumes.
BEHIND: Final = 250
_CLASS: Final = "local"
_SPACE: Final = "default"


def with_claim(number: int) -> Raw:
    """Return a pod with a claim of its own."""
    pod = plain("local")
    claim = {"claimName": f"claim-{number}"}
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": claim}]
    return pod


class LateBinding:
    """As many claims as pods, as many volumes, and what becomes of them."""

    def __init__(self, core: Scheduler, *, nodes: int, claims: int) -> None:
        self._core = core
        self._nodes = nodes
        self._claims = claims
        self._version = 0
        self._waiting: deque[PatchObject] = deque()
        self._nanoseconds = 0

    def fill(self, now: float) -> None:
        """Let there be volumes, dealt round over the nodes, and claims: any can have any."""
        raw: Raw = {
            "metadata": {"name": _CLASS},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        self._core.handle(self._changed(now, Kind.STORAGE_CLASS, raw))
        for number in range(self._claims):
            self._core.handle(self._changed(now, Kind.PERSISTENT_VOLUME, self._volume(number)))
            claim = self._claim(number)
            self._core.handle(self._changed(now, Kind.PERSISTENT_VOLUME_CLAIM, claim))

    def set_out(self, queued: QueuedPod, found: Placement, *, now: float) -> int:
        """Let a pod go to its node, and the first of many be bound; return how long that takes."""
        self._nanoseconds = 0
        node = inside(self._core).cache.nodes.name_of(found.row)
        flight = InFlightPod(queued, node, started=now, state=found.state)
        start = time.process_time_ns()
        inside(self._core).binding_cycle.begin(flight, now=now)
        instructions = inside(self._core).out.drain()
        self._nanoseconds += time.process_time_ns() - start
        self._carry_out(instructions, now=now)
        if len(self._waiting) > BEHIND:
            self._bind(self._waiting.popleft(), now=now)
        return self._nanoseconds

    def _carry_out(self, instructions: list[Instruction], *, now: float) -> None:
        for found in instructions:
            if isinstance(found, PatchObject):
                self._waiting.append(found)
                number, claim = _number_of(found.object_name), _claim_of(found)
                volume = self._volume(number, claim)
                self._tell(self._changed(now, Kind.PERSISTENT_VOLUME, volume))
                self._tell(RequestResult(now, found.uid, found.attempt, found.request, done=True))
            elif isinstance(found, Bind):
                self._tell(BindResult(now, found.uid, found.attempt, found.node, bound=True))

    def _bind(self, written: PatchObject, *, now: float) -> None:
        """Bind a claim to the volume that was written for it, as the controller does it."""
        name, claim = written.object_name, _claim_of(written)
        number = _number_of(claim)
        for kind, raw in (
            (Kind.PERSISTENT_VOLUME, self._volume(_number_of(name), claim, phase="Bound")),
            (Kind.PERSISTENT_VOLUME_CLAIM, self._claim(number, name)),
            (Kind.PERSISTENT_VOLUME_CLAIM, self._claim(number, name, phase="Bound")),
        ):
            self._tell(self._changed(now, kind, raw))

    def _tell(self, message: Message) -> None:
        start = time.process_time_ns()
        instructions = self._core.handle(message)
        self._nanoseconds += time.process_time_ns() - start
        self._carry_out(instructions, now=message.now)

    def _changed(self, now: float, kind: Kind, raw: Raw) -> ObjectChanged:
        self._version += 1
        raw["metadata"]["resourceVersion"] = str(self._version)
        found = msgspec.convert(raw, kind.type)
        return ObjectChanged(now, kind, found.metadata.namespace, found.metadata.name, found)

    def _volume(self, number: int, claim: str = "", *, phase: str = "Available") -> Raw:
        host = {"key": HOST, "operator": "In", "values": [f"node-{number % self._nodes}"]}
        spec: Raw = {
            **_common("capacity"),
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}},
        }
        metadata: Raw = {"name": f"volume-{number}", "namespace": "", "uid": f"volume-{number}"}
        if claim:
            spec["claimRef"] = {"namespace": _SPACE, "name": claim, "uid": claim}
            metadata["annotations"] = {"pv.kubernetes.io/bound-by-controller": "yes"}
        return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}

    def _claim(self, number: int, volume: str = "", *, phase: str = "Pending") -> Raw:
        name = f"claim-{number}"
        metadata: Raw = {"name": name, "namespace": _SPACE, "uid": name}
        if volume:
            metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        spec = {**_common("requests"), "volumeName": volume}
        return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def _common(size: str) -> dict[str, Any]:
    amount: dict[str, Any] = {size: {"storage": "1Gi"}}
    return {
        **(amount if size == "capacity" else {"resources": amount}),
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": _CLASS,
        "volumeMode": "Filesystem",
    }


def _number_of(name: str) -> int:
    return int(name.rpartition("-")[2])


def _claim_of(written: PatchObject) -> str:
    found: str = written.patch["spec"]["claimRef"]["name"]
    return found
