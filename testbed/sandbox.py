"""A corner of a shared bed for one test: its own namespace, and all it made removed afterwards.

Nodes belong to no namespace, so tests that count nodes see those of others: a sandbox leaves
none behind, and tests that need an empty cluster run one after the other.
"""

import uuid
from collections.abc import Iterable
from typing import Self

from testbed.bed import Bed
from testbed.client import Client, Object
from testbed.component import READY_SECONDS
from testbed.errors import ApiError
from testbed.options import CONTROLLER_MANAGER
from testbed.waiting import eventually
from testbed.workload import create_all, make_binding, object_path


class Sandbox:
    """A namespace of one test, with helpers that remember what to remove."""

    def __init__(self, bed: Bed, *, prefix: str = "test") -> None:
        self.bed = bed
        self.namespace = f"{prefix}-{uuid.uuid4().hex[:8]}"
        self._cluster_paths: list[str] = []

    def __enter__(self) -> Self:
        self.client.create(
            "/api/v1/namespaces",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}},
        )
        if CONTROLLER_MANAGER in self.bed.options.all_components:
            # Pods are refused until the controller manager has made their service account. One
            # that was just restarted is ready before its controllers are.
            eventually(
                lambda: self.find(f"{self.path}/serviceaccounts/default"),
                READY_SECONDS,
                f"service account of namespace {self.namespace}",
            )
        return self

    def __exit__(self, *_: object) -> None:
        # No kubelet confirms the end of a pod here, so pods go at once or not at all.
        self.client.delete(f"{self.path}/pods", grace_period_seconds=0)
        for path in (*self._cluster_paths, self.path):
            self.delete(path)

    @property
    def client(self) -> Client:
        """The bed's client that may do everything."""
        return self.bed.client

    @property
    def path(self) -> str:
        """Where the objects of this namespace are."""
        return f"/api/v1/namespaces/{self.namespace}"

    def create_nodes(self, nodes: Iterable[Object]) -> list[Object]:
        """Create nodes that are removed with the sandbox."""
        wanted = list(nodes)
        self._cluster_paths += [object_path(node) for node in wanted]
        return create_all(self.client, wanted)

    def create_cluster_object(self, collection: str, body: Object) -> Object:
        """Create any object without a namespace that is removed with the sandbox."""
        self._cluster_paths.append(f"{collection}/{body['metadata']['name']}")
        return self.client.create(collection, body)

    def remember(self, path: str) -> None:
        """Take note of an object without a namespace that is to be removed with the sandbox."""
        self._cluster_paths.append(path)

    def create_pods(self, pods: Iterable[Object]) -> list[Object]:
        """Create pods in this namespace, whatever namespace they were made for."""
        moved = [
            pod | {"metadata": pod["metadata"] | {"namespace": self.namespace}} for pod in pods
        ]
        return create_all(self.client, moved)

    def bind(self, pod: Object, node_name: str) -> None:
        """Bind a created pod as a scheduler would."""
        self.client.create(f"{object_path(pod)}/binding", make_binding(pod, node_name))

    def pods(self) -> dict[str, Object]:
        """Return the pods of this namespace by name."""
        return {pod["metadata"]["name"]: pod for pod in self.client.list(f"{self.path}/pods")}

    def find(self, path: str) -> Object | None:
        """Read an object; None if it is not there."""
        try:
            return self.client.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def delete(self, path: str) -> None:
        """Delete an object if it is there."""
        try:
            self.client.delete(path, grace_period_seconds=0)
        except ApiError as error:
            if error.status != 404:
                raise
