"""Where a story takes place: a namespace, its nodes, and hands to change things."""

from collections.abc import Mapping
from typing import Any, Self

from testbed.client import STRATEGIC_MERGE_PATCH, Object
from testbed.sandbox import Sandbox
from testbed.workload import NODES

THEIRS, OURS = "theirs", "ours"
SIDES = (THEIRS, OURS)


class Stage:
    """What steps can do, one thing after the other (`stage.taint(...).end(...)`).

    Pods that wait exist twice, `<name>-theirs` and `<name>-ours`.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._client = sandbox.client

    # Nodes

    def add_node(self, node: Object) -> Self:
        """Create a node."""
        self.sandbox.create_nodes([node])
        return self

    def drop_node(self, name: str) -> Self:
        """Delete a node."""
        self._client.delete(f"{NODES}/{name}")
        return self

    def label(self, name: str, **labels: str | None) -> Self:
        """Set labels of a node; None takes one away."""
        self._client.patch(f"{NODES}/{name}", {"metadata": {"labels": labels}})
        return self

    def taint(self, name: str, *keys: str) -> Self:
        """Give a node these taints, and no others."""
        taints = [{"key": key, "effect": "NoSchedule"} for key in keys]
        self._client.patch(f"{NODES}/{name}", {"spec": {"taints": taints or None}})
        return self

    def cordon(self, name: str, *, unschedulable: bool = True) -> Self:
        """Let a node take no more pods, or take them again."""
        self._client.patch(f"{NODES}/{name}", {"spec": {"unschedulable": unschedulable or None}})
        return self

    def offer(self, name: str, **amounts: str) -> Self:
        """Change what a node has to give."""
        given = {key.replace("_", "-"): text for key, text in amounts.items()}
        self._client.patch(f"{NODES}/{name}/status", {"status": {"allocatable": given}})
        return self

    # Pods

    def put(self, *pods: Object) -> Self:
        """Create pods that are on nodes already."""
        self.sandbox.create_pods(pods)
        return self

    def end(self, *names: str) -> Self:
        """Let pods be gone at once."""
        for name in names:
            path = f"{self.sandbox.path}/pods/{name}"
            self._client.delete(path, grace_period_seconds=0)
        return self

    def relabel(self, name: str, **labels: str | None) -> Self:
        """Set labels of a pod that is on a node."""
        self._client.patch(f"{self.sandbox.path}/pods/{name}", {"metadata": {"labels": labels}})
        return self

    def change(self, name: str, patch: Object) -> Self:
        """Change a pod that waits, on both sides."""
        for side in SIDES:
            path = f"{self.sandbox.path}/pods/{name}-{side}"
            self._client.patch(path, patch, content_type=STRATEGIC_MERGE_PATCH)
        return self

    def ungate(self, name: str) -> Self:
        """Take the scheduling gates of a pod away, on both sides."""
        self.change(name, {"spec": {"schedulingGates": None}})
        return self

    def nominate(self, name: str, node: str) -> Self:
        """Let the status of a pod that waits name a node, on both sides."""
        for side in SIDES:
            path = f"{self.sandbox.path}/pods/{name}-{side}/status"
            self._client.patch(path, {"status": {"nominatedNodeName": node or None}})
        return self

    # Everything else

    def create(self, collection: str, body: Object, status: Object | None = None) -> Self:
        """Create an object; `{namespace}` in the collection is the story's."""
        path = self._path(collection)
        if path == collection:
            self.sandbox.create_cluster_object(path, body)
        else:
            self._client.create(path, body)
        # Nobody is there who would let go of what is protected, and the next story is near.
        self.patch(collection, body["metadata"]["name"], {"metadata": {"finalizers": None}})
        if status is not None:
            self.set_status(collection, body["metadata"]["name"], status)
        return self

    def set_status(self, collection: str, name: str, status: Object) -> Self:
        """Change the status of an object."""
        self._client.patch(f"{self._path(collection)}/{name}/status", {"status": status})
        return self

    def patch(self, collection: str, name: str, patch: Object) -> Self:
        """Change an object."""
        self._client.patch(f"{self._path(collection)}/{name}", patch)
        return self

    def delete(self, collection: str, name: str) -> Self:
        """Delete an object."""
        self._client.delete(f"{self._path(collection)}/{name}")
        return self

    def _path(self, collection: str) -> str:
        return collection.format(namespace=self.sandbox.namespace)

    # What is said

    def said(self, names: Mapping[str, Any]) -> dict[str, dict[str, str]]:
        """Return what the condition of each waiting pod says: side -> name -> message."""
        pods = self.sandbox.pods()
        return {
            side: {name: _message(pods.get(f"{name}-{side}"), name, side) for name in names}
            for side in SIDES
        }

    def last_notes(self, names: Mapping[str, Any], side: str) -> dict[str, str]:
        """Return the note of the last event about each waiting pod of a side."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.sandbox.namespace}/events"
        notes: dict[str, str] = {}
        for event in sorted(self._client.list(path), key=_last_seen):
            notes[event["regarding"]["name"]] = event["note"]
        return {
            name: notes.get(f"{name}-{side}", "").replace(f"{name}-{side}", name) for name in names
        }


def _last_seen(event: Object) -> str:
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event["eventTime"])


def _message(pod: Object | None, name: str, side: str) -> str:
    """Return what a pod's condition says, without the side in its name; empty if nothing."""
    if pod is None:
        return "(gone)"
    if node := pod["spec"].get("nodeName"):
        return f"(bound to {node})"
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "PodScheduled":
            return str(condition.get("message", "")).replace(f"{name}-{side}", name)
    return ""
