"""An API server with its controllers, as far as pods on their way have to do with it.

It executes what the core asks for, now or later or not at all, and its watch lags behind. It knows
nothing of the core: what it does is what a real one may do.
"""

import copy
import random
from collections.abc import Callable
from typing import Any

import msgspec

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.messages.incoming import (
    BindResult,
    Message,
    NodeChanged,
    ObjectChanged,
    PodChanged,
    PodRead,
    RequestResult,
)
from k8s_scheduler.core.messages.outgoing import (
    Bind,
    ClearNomination,
    Evict,
    Instruction,
    Nominate,
    PatchCondition,
    PatchObject,
    ReadPod,
)

PV, PVC = Kind.PERSISTENT_VOLUME, Kind.PERSISTENT_VOLUME_CLAIM
SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"
HOST = "kubernetes.io/hostname"
TIME = "2026-01-01T00:00:00Z"
REFUSED = "the server said no"
Raw = dict[str, Any]


class Server:
    """Objects, their versions, and what has happened to them that nobody was told yet."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.version = 0
        self.pods: dict[str, Raw] = {}
        self.nodes: dict[str, Raw] = {}
        self.objects: dict[tuple[Kind, str, str], Raw] = {}
        # What the watch has still to show, and what the core waits for or only wants.
        self.watch: list[Callable[[float], Message]] = []
        self.asked: list[Bind | Evict | ClearNomination | PatchObject] = []
        self.wished: list[PatchCondition | Nominate] = []
        # Pods that were bound, and the watch will not show it.
        self.hidden: set[str] = set()
        # How many of them; what is lost changes nothing else of a history.
        self.losing = 0.0
        self.fate = random.Random(repr(rng.getstate()[1][:4]))
        # Pods that are to be read.
        self.reads: list[ReadPod] = []
        # Answers that are on their way.
        self.answers: list[Callable[[float], Message]] = []

    def take(self, instructions: list[Instruction]) -> None:
        """Take what the core asks for."""
        for instruction in instructions:
            if isinstance(instruction, PatchCondition | Nominate):
                self.wished.append(instruction)
            elif isinstance(instruction, Bind | Evict | ClearNomination | PatchObject):
                self.asked.append(instruction)
            elif isinstance(instruction, ReadPod):
                self.reads.append(instruction)
            if isinstance(instruction, Bind):
                # What a pod says of itself gives way to its bind.
                self.wished = [wish for wish in self.wished if wish.uid != instruction.uid]

    # Changes, each with a new version and an entry in the watch

    def put_pod(self, raw: Raw) -> None:
        self._stamp(raw)
        uid = raw["metadata"]["uid"]
        self.pods[uid] = raw
        pod = msgspec.convert(copy.deepcopy(raw), Pod)
        self.hidden.discard(uid)
        self.watch.append(lambda now: PodChanged(now, PodUid(uid), pod))

    def drop_pod(self, uid: str) -> None:
        if self.pods.pop(uid, None) is not None:
            if uid in self.hidden and self.fate.random() < 0.5:
                return
            self.watch.append(lambda now: PodChanged(now, PodUid(uid), None))

    def put_node(self, raw: Raw) -> None:
        self._stamp(raw)
        name = raw["metadata"]["name"]
        self.nodes[name] = raw
        node = msgspec.convert(raw, Node)
        self.watch.append(lambda now: NodeChanged(now, NodeName(name), node))

    def drop_node(self, name: str) -> None:
        if self.nodes.pop(name, None) is not None:
            self.watch.append(lambda now: NodeChanged(now, NodeName(name), None))

    def put(self, kind: Kind, raw: Raw) -> None:
        self._stamp(raw)
        metadata = raw["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        self.objects[kind, namespace, name] = raw
        found = msgspec.convert(copy.deepcopy(raw), kind.type)
        self.watch.append(lambda now: ObjectChanged(now, kind, namespace, name, found))

    def drop(self, kind: Kind, namespace: str, name: str) -> None:
        if self.objects.pop((kind, namespace, name), None) is not None:
            self.watch.append(lambda now: ObjectChanged(now, kind, namespace, name, None))

    def all(self, kind: Kind) -> list[Raw]:
        return [raw for (found, _, _), raw in self.objects.items() if found is kind]

    def _stamp(self, raw: Raw) -> None:
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)

    # Requests

    def execute(self, index: int, *, lucky: bool) -> None:
        """Do what was asked for, or refuse to; the answer comes later."""
        asked = self.asked.pop(index)
        if isinstance(asked, Bind):
            self._bind(asked, lucky=lucky)
            return
        done, message = False, REFUSED
        if lucky:
            done, message = self._write(asked)
        self.answers.append(
            lambda now: RequestResult(now, asked.uid, asked.attempt, asked.request, done, message)
        )

    def read(self, index: int) -> None:
        """Read a pod; the answer comes later, as it was then."""
        asked = self.reads.pop(index)
        raw = self.pods.get(asked.uid)
        pod = None if raw is None else msgspec.convert(copy.deepcopy(raw), Pod)
        self.answers.append(lambda now: PodRead(now, asked.uid, asked.attempt, pod))

    def _bind(self, bind: Bind, *, lucky: bool) -> None:
        raw = self.pods.get(bind.uid)
        bound = (
            lucky
            and raw is not None
            and not raw["spec"].get("nodeName")
            and "deletionTimestamp" not in raw["metadata"]
        )
        if raw is not None and bound:
            raw["spec"]["nodeName"] = bind.node
            raw["status"].pop("nominatedNodeName", None)
            self.put_pod(raw)
            if self.fate.random() < self.losing:
                # The watch loses it: only the answer tells.
                self.watch.pop()
                self.hidden.add(bind.uid)
        message = "" if bound else REFUSED
        self.answers.append(
            lambda now: BindResult(now, bind.uid, bind.attempt, bind.node, bound, message)
        )

    def _write(self, asked: Evict | ClearNomination | PatchObject) -> tuple[bool, str]:
        if isinstance(asked, PatchObject):
            return self._patch(asked)
        other = asked.victim if isinstance(asked, Evict) else asked.other
        raw = self.pods.get(other.uid)
        if raw is None:
            return True, "NotFound"
        if isinstance(asked, ClearNomination):
            raw["status"].pop("nominatedNodeName", None)
            self.put_pod(raw)
            return True, ""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
        }
        raw["status"].setdefault("conditions", []).append(condition)
        raw["metadata"]["deletionTimestamp"] = TIME
        self.put_pod(raw)
        if self.rng.random() < 0.5:
            self.drop_pod(other.uid)
        return True, ""

    def _patch(self, asked: PatchObject) -> tuple[bool, str]:
        raw = self.objects.get((asked.kind, asked.object_namespace, asked.object_name))
        if raw is None:
            return False, "not found"
        wanted = asked.patch.get("metadata", {}).get("resourceVersion")
        if wanted is not None and wanted != raw["metadata"]["resourceVersion"]:
            return False, "the object has been modified"
        _merge(raw, asked.patch)
        self.put(asked.kind, raw)
        return True, ""

    def write_condition(self, index: int) -> None:
        """Write a condition, or a nomination, or both into a pod's status."""
        wish = self.wished.pop(index)
        raw = self.pods.get(wish.uid)
        if raw is None:
            return
        if isinstance(wish, Nominate):
            raw["status"]["nominatedNodeName"] = wish.node
            self.put_pod(raw)
            return
        others = [c for c in raw["status"].get("conditions", ()) if c["type"] != "PodScheduled"]
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": wish.reason,
            "message": wish.message,
            "lastTransitionTime": TIME,
        }
        raw["status"]["conditions"] = [*others, condition]
        if wish.nominated_node_name is not None:
            raw["status"]["nominatedNodeName"] = wish.nominated_node_name
        self.put_pod(raw)

    # Controllers

    def control_volumes(self) -> bool:
        """Bind claims to the volumes that name them; return whether anything was done."""
        for raw in self.all(PV):
            reference = raw["spec"].get("claimRef")
            claim = reference and self.objects.get((PVC, reference["namespace"], reference["name"]))
            if not claim or claim["metadata"]["uid"] != reference.get("uid"):
                continue
            if claim["spec"].get("volumeName"):
                continue
            raw["status"]["phase"] = "Bound"
            self.put(PV, raw)
            self._complete(claim, raw["metadata"]["name"])
            return True
        return False

    def provision(self, *, lucky: bool) -> bool:
        """Make a volume for a claim that was given a node, or give up on it."""
        for claim in self.all(PVC):
            annotations = claim["metadata"].setdefault("annotations", {})
            node = annotations.get(SELECTED)
            if not node or claim["spec"].get("volumeName"):
                continue
            if claim["spec"]["storageClassName"] != "dynamic":
                continue
            if not lucky:
                del annotations[SELECTED]
                self.put(PVC, claim)
                return True
            metadata = claim["metadata"]
            reference = {key: metadata[key] for key in ("namespace", "name", "uid")}
            name = f"made-{self.version}"
            self.put(PV, volume(name, "dynamic", node, of_claim=reference, phase="Bound"))
            self._complete(claim, name)
            return True
        return False

    def _complete(self, claim: Raw, name: str) -> None:
        claim["spec"]["volumeName"] = name
        claim["metadata"].setdefault("annotations", {})[COMPLETED] = "yes"
        claim["status"]["phase"] = "Bound"
        self.put(PVC, claim)


def volume(
    name: str, of: str, node: str, *, of_claim: Raw | None = None, phase: str = "Available"
) -> Raw:
    """Return a volume that one node reaches."""
    reach = {"key": HOST, "operator": "In", "values": [node]}
    spec: Raw = {
        "storageClassName": of,
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [reach]}]}},
    }
    if of_claim is not None:
        spec["claimRef"] = of_claim
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}


def claim(name: str, of: str) -> Raw:
    """Return a claim that waits for its pod."""
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"{name}-uid"},
        "spec": {
            "storageClassName": of,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    }


def _merge(target: Raw, patch: Raw) -> None:
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = value
