"""Our own pod, as the API server has it: what Events about this process are about."""

from dataclasses import dataclass
from typing import Any

import msgspec

from k8s_scheduler.api.meta import ObjectReference
from k8s_scheduler.kube.errors import UNREADABLE, KubeError, TransportError
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.resources import PODS

_READ_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class OwnPod:
    """The pod that we run in, known by POD_NAMESPACE and POD_NAME."""

    transport: Transport
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    async def read(self) -> dict[str, Any]:
        """Return it; raises KubeError."""
        path = PODS.object_path(self.name, namespace=self.namespace)
        response = await self.transport.request("GET", path, timeout_seconds=_READ_SECONDS)
        if not response.ok:
            raise response.error()
        try:
            return msgspec.json.decode(response.body, type=dict[str, Any])
        except UNREADABLE as error:
            raise TransportError(f"pod {self}: the answer can't be read: {error}") from error

    def reference(self, pod: dict[str, Any]) -> ObjectReference:
        """Return what an Event names: with the uid, by which `kubectl describe` finds it."""
        uid = pod.get("metadata", {}).get("uid", "")
        return ObjectReference(kind="Pod", name=self.name, namespace=self.namespace, uid=uid)

    async def found(self) -> ObjectReference:
        """Return the same for a pod that is yet to be read; without its uid if it can't be."""
        try:
            return self.reference(await self.read())
        except KubeError:
            return self.reference({})
