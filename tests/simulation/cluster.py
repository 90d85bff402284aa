"""The rest of the cluster: users, kubelets, another scheduler, the volume and pod controllers.

All of it acts on the server directly and at once: what is under test is how the daemons see it.
"""

import random
from collections.abc import Callable
from typing import Any

from tests.fakes.objects import locate
from tests.fakes.transport import Json
from tests.fakes.watch import Change
from tests.simulation import documents as doc
from tests.simulation.server import CLAIMS, NODES, PODS, VOLUMES, ModelServer

STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


def pod_path(name: str) -> str:
    namespace = doc.GUARDED if name.startswith("g") else doc.NAMESPACE
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def claim_path(name: str) -> str:
    return f"/api/v1/namespaces/{doc.NAMESPACE}/persistentvolumeclaims/{name}"


class Cluster:
    """Does what a plan says, and reacts to what happens."""

    def __init__(self, server: ModelServer, rng: random.Random) -> None:
        self._server = server
        self._loop = server.loop
        self._rng = rng
        server.on_change = self._react
        server.create("/api/v1/namespaces", {"metadata": {"name": doc.NAMESPACE}})

    # What users do; each is an action of a plan.

    def create_pod(
        self, content: Json, claim: Json | None = None, volume: Json | None = None
    ) -> None:
        if volume is not None:
            self._server.create(VOLUMES, volume)
        if claim is not None:
            self._server.create(CLAIMS, claim)
        if self._server.peek(pod_path(content["metadata"]["name"])) is None:
            content = doc.merged(
                content, {"metadata": {"creationTimestamp": doc.timestamp(self._loop.now)}}
            )
            self._server.create(PODS, content)

    def delete_pod(self, chance: float) -> None:
        found = self._some(PODS, chance, lambda p: not p["metadata"].get("deletionTimestamp"))
        if found is not None:
            self._let_go(found)

    def replace_pod(self, chance: float) -> None:
        """Delete a pending pod and create another one of the same name at once."""
        found = self._some(PODS, chance, lambda p: doc.is_ours(p) and not doc.node_of(p))
        if found is not None:
            name = found["metadata"]["name"]
            self._server.remove(pod_path(name))
            labels = found["metadata"]["labels"]
            namespace = found["metadata"]["namespace"]
            content = {**found, "metadata": {"name": name, "namespace": namespace}}
            content["metadata"]["labels"] = labels
            content["status"] = {"phase": "Pending"}
            self._server.create(PODS, content)

    def finish_pod(self, chance: float) -> None:
        found = self._some(PODS, chance, lambda p: bool(doc.node_of(p)) and not doc.is_over(p))
        if found is not None:
            path = pod_path(found["metadata"]["name"])
            self._server.patch(path, {"status": {"phase": "Succeeded"}})

    def open_gate(self, chance: float) -> None:
        found = self._some(PODS, chance, lambda p: bool(p["spec"].get("schedulingGates")))
        if found is not None:
            path = pod_path(found["metadata"]["name"])
            self._server.patch(path, {"spec": {"schedulingGates": None}})

    def open_all_gates(self) -> None:
        for found in self._server.every(PODS):
            if found["spec"].get("schedulingGates"):
                self.open_gate(0.0)

    def add_node(self, content: Json) -> None:
        if self._server.peek(f"{NODES}/{content['metadata']['name']}") is None:
            self._server.create(NODES, content)

    def delete_node(self, chance: float) -> None:
        found = self._some(NODES, chance)
        if found is not None and len(self._server.every(NODES)) > 1:
            name = found["metadata"]["name"]
            self._server.remove(f"{NODES}/{name}")
            self._later(1.0, 5.0, self._collect, name)

    def cordon(self, chance: float, *, on: bool) -> None:
        wanted = None if not on else True
        found = self._some(NODES, chance, lambda n: bool(n["spec"].get("unschedulable")) != on)
        if found is not None:
            path = f"{NODES}/{found['metadata']['name']}"
            self._server.patch(path, {"spec": {"unschedulable": wanted}})

    def relabel(self, chance: float, zone: str) -> None:
        found = self._some(NODES, chance)
        if found is not None:
            path = f"{NODES}/{found['metadata']['name']}"
            self._server.patch(path, {"metadata": {"labels": {doc.ZONE: zone}}})

    def resize(self, chance: float, milli_cpu: int) -> None:
        found = self._some(NODES, chance)
        if found is not None:
            path = f"{NODES}/{found['metadata']['name']}"
            self._server.patch(path, {"status": {"allocatable": {"cpu": f"{milli_cpu}m"}}})

    def touch_pod(self, chance: float) -> None:
        """Change something of a pod that no decision depends on."""
        found = self._some(PODS, chance)
        if found is not None:
            stamp = {"metadata": {"annotations": {"touched": f"{self._loop.now:.3f}"}}}
            self._server.patch(pod_path(found["metadata"]["name"]), stamp)

    def webhook(self, *, down: bool) -> None:
        """Let the webhook on the Bindings of one namespace be down, or come back."""
        path = "/api/v1/namespaces"
        if down and self._server.peek(f"{path}/{doc.GUARDED}") is None:
            self._server.create(path, {"metadata": {"name": doc.GUARDED}})
        self._server.webhook_down = down

    def _some(
        self, list_path: str, chance: float, wanted: Callable[[Json], bool] = lambda _: True
    ) -> Json | None:
        """Return one of those that are wanted; which one, `chance` says."""
        found = [content for content in self._server.every(list_path) if wanted(content)]
        return found[int(chance * len(found))] if found else None

    # What controllers and kubelets do.

    def resume(self, change: Change) -> None:
        """Go on from an object as a restored storage has it."""
        self._react(change)
        now = change.content
        if change.location.list_path == PODS:
            name, node = now["metadata"]["name"], doc.node_of(now)
            if now["metadata"].get("deletionTimestamp"):
                self._later(0.1, 3.0, self._finish_deletion, name, now["metadata"]["uid"])
            if node and self._server.peek(f"{NODES}/{node}") is None:
                self._later(1.0, 5.0, self._collect, node)

    def _react(self, change: Change) -> None:
        if change.kind == "DELETED":
            return
        path = change.location.list_path
        if path == PODS:
            self._react_to_pod(change)
        elif path == VOLUMES and "claimRef" in change.content["spec"]:
            self._later(0.05, 1.0, self._bind_volume, change.location.name)

    def _react_to_pod(self, change: Change) -> None:
        now, before = change.content, change.before
        name, node = now["metadata"]["name"], doc.node_of(now)
        if before is None and not node and not doc.is_ours(now):
            self._later(0.1, 1.5, self._bind_foreign, name)
        if node and (before is None or not doc.node_of(before)):
            self._later(0.2, 2.0, self._begin, name, now["metadata"]["uid"])
        leaves = now["metadata"].get("deletionTimestamp")
        if leaves and not (before or now)["metadata"].get("deletionTimestamp"):
            self._later(0.1, 3.0, self._finish_deletion, name, now["metadata"]["uid"])

    def _later(self, low: float, high: float, act: Callable[..., None], *args: Any) -> None:
        self._loop.at(self._loop.now + self._rng.uniform(low, high), act, *args)

    def _begin(self, name: str, uid: str) -> None:
        found = self._server.peek(pod_path(name))
        if found is not None and doc.uid_of(found) == uid and not doc.is_over(found):
            started = {"phase": "Running", "startTime": doc.timestamp(self._loop.now)}
            self._server.patch(pod_path(name), {"status": started})

    def _finish_deletion(self, name: str, uid: str) -> None:
        found = self._server.peek(pod_path(name))
        if found is not None and doc.uid_of(found) == uid:
            self._server.remove(pod_path(name))

    def _collect(self, node: str) -> None:
        """Remove the pods of a node that is gone."""
        if any(n["metadata"]["name"] == node for n in self._server.every(NODES)):
            return
        for found in self._server.every(PODS):
            if doc.node_of(found) == node:
                self._server.remove(pod_path(found["metadata"]["name"]))

    def _let_go(self, found: Json) -> None:
        path = pod_path(found["metadata"]["name"])
        stored = self._server._stored(locate(path))
        if stored is not None:
            self._server._begin_delete(locate(path), stored)

    def _bind_foreign(self, name: str) -> None:
        """Be the other scheduler: any node that has room in truth."""
        found = self._server.peek(pod_path(name))
        if found is None or doc.node_of(found):
            return
        nodes = [
            n
            for n in self._server.every(NODES)
            if not n["spec"].get("unschedulable") and self._has_room(n, doc.milli_cpu_of(found))
        ]
        if nodes:
            chosen = self._rng.choice(nodes)["metadata"]["name"]
            self._server.acting = doc.FOREIGN
            self._server.assign(locate(pod_path(name)), chosen)
            self._server.acting = "cluster"

    def _has_room(self, node: Json, milli_cpu: int) -> bool:
        there = [
            p
            for p in self._server.every(PODS)
            if doc.node_of(p) == node["metadata"]["name"] and not doc.is_over(p)
        ]
        cpu, count = doc.room_of(node)
        return sum(map(doc.milli_cpu_of, there)) + milli_cpu <= cpu and len(there) < count

    def _bind_volume(self, name: str) -> None:
        """Be the volume controller: finish a binding that the scheduler has begun."""
        volume = self._server.peek(f"{VOLUMES}/{name}")
        reference = volume["spec"].get("claimRef") if volume else None
        if not reference:
            return
        claim = self._server.peek(claim_path(reference["name"]))
        if claim is None or claim["spec"].get("volumeName"):
            return
        self._server.patch(f"{VOLUMES}/{name}", {"status": {"phase": "Bound"}})
        bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        self._server.patch(
            claim_path(reference["name"]),
            {"metadata": bound, "spec": {"volumeName": name}, "status": {"phase": "Bound"}},
        )
