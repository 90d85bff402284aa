"""Where each kind lives on the API server, and that its informer reads it."""

import pytest

from k8s_scheduler.api.kinds import BUILT_IN, Kind, custom_kind
from k8s_scheduler.kube.resources import NODES, PODS, resource_of
from tests.fakes.api import FakeApi
from tests.fakes.clock import settle, virtual_time
from tests.fakes.harness import watched

# As `kubectl api-resources` of v1.37 has them.
LIST_PATHS = {
    Kind.NAMESPACE: "/api/v1/namespaces",
    Kind.SERVICE: "/api/v1/services",
    Kind.REPLICATION_CONTROLLER: "/api/v1/replicationcontrollers",
    Kind.REPLICA_SET: "/apis/apps/v1/replicasets",
    Kind.STATEFUL_SET: "/apis/apps/v1/statefulsets",
    Kind.POD_DISRUPTION_BUDGET: "/apis/policy/v1/poddisruptionbudgets",
    Kind.PERSISTENT_VOLUME: "/api/v1/persistentvolumes",
    Kind.PERSISTENT_VOLUME_CLAIM: "/api/v1/persistentvolumeclaims",
    Kind.STORAGE_CLASS: "/apis/storage.k8s.io/v1/storageclasses",
    Kind.CSI_NODE: "/apis/storage.k8s.io/v1/csinodes",
    Kind.CSI_DRIVER: "/apis/storage.k8s.io/v1/csidrivers",
    Kind.CSI_STORAGE_CAPACITY: "/apis/storage.k8s.io/v1/csistoragecapacities",
    Kind.VOLUME_ATTACHMENT: "/apis/storage.k8s.io/v1/volumeattachments",
    Kind.DEVICE_CLASS: "/apis/resource.k8s.io/v1/deviceclasses",
}
CLUSTER_SCOPED = {
    Kind.NAMESPACE,
    Kind.PERSISTENT_VOLUME,
    Kind.STORAGE_CLASS,
    Kind.CSI_NODE,
    Kind.CSI_DRIVER,
    Kind.VOLUME_ATTACHMENT,
    Kind.DEVICE_CLASS,
}


@pytest.mark.parametrize(
    ("namespaced", "path"),
    [(True, "/apis/x.io/v2/namespaces/a/pods/p"), (False, "/apis/x.io/v2/pods/p")],
)
def test_a_custom_resource_is_no_other_of_the_same_name(namespaced: bool, path: str) -> None:
    kind = custom_kind("Pod", "pods.x.io", version="v2", paths=[], namespaced=namespaced)
    resource = resource_of(kind)
    assert (resource.label, PODS.label) == ("pods.x.io", "pods")
    assert resource.list_path == "/apis/x.io/v2/pods"
    assert resource.object_path("p", namespace="a") == path
    assert resource.may_be_absent


def test_every_kind_has_its_resource() -> None:
    assert {kind: resource_of(kind).list_path for kind in BUILT_IN} == LIST_PATHS
    assert set(LIST_PATHS) == set(BUILT_IN)
    for kind in BUILT_IN:
        resource = resource_of(kind)
        assert resource.kind == kind
        assert resource.type is kind.type
        assert resource.namespaced == (kind not in CLUSTER_SCOPED)


def test_names_are_those_of_roles() -> None:
    assert PODS.full_name == "pods"
    assert resource_of(Kind.CSI_NODE).full_name == "csinodes.storage.k8s.io"


def test_only_the_core_group_is_always_there() -> None:
    assert not NODES.may_be_absent
    assert not PODS.may_be_absent
    absent = {kind for kind in BUILT_IN if resource_of(kind).may_be_absent}
    assert absent == {kind for kind, path in LIST_PATHS.items() if path.startswith("/apis/")}


@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "paged"])
@pytest.mark.parametrize("kind", BUILT_IN)
def test_adds_updates_and_deletes_of_every_kind_are_told(kind: Kind, *, streaming: bool) -> None:
    @virtual_time
    async def case() -> None:
        resource = resource_of(kind)
        api = FakeApi(streaming_lists=streaming)
        metadata = {"name": "x"} | ({"namespace": "a"} if resource.namespaced else {})
        key = "a/x" if resource.namespaced else "x"
        api.create(resource.list_path, {"metadata": metadata})
        async with watched(api, resource) as running:
            path = resource.object_path("x", namespace="a")
            api.update(path, {"metadata": metadata | {"labels": {"l": "v"}}})
            await settle()
            stored = running.informer.store[key]
            assert isinstance(stored, kind.type)
            assert stored.metadata.labels == {"l": "v"}
            api.delete(path)
            await settle()
            assert running.told() == [f"add {key}", f"update {key}", f"delete {key}"]

    case()
