"""What of a world is worked out without a server."""

from pathlib import Path

import pytest

from testbed.bed import Bed
from testbed.bench.account import POLICY
from testbed.bench.world import World, collection_path, is_fresh
from testbed.commands import Plan, arguments, needed_ports
from testbed.errors import TestbedError
from testbed.layout import Layout
from testbed.options import API_SERVER
from testbed.workload import make_node


@pytest.mark.parametrize(
    ("version", "kind", "namespace", "path"),
    [
        ("v1", "Node", None, "/api/v1/nodes"),
        ("v1", "Pod", "a", "/api/v1/namespaces/a/pods"),
        ("v1", "PersistentVolume", None, "/api/v1/persistentvolumes"),
        ("storage.k8s.io/v1", "StorageClass", None, "/apis/storage.k8s.io/v1/storageclasses"),
        (
            "scheduling.k8s.io/v1",
            "PriorityClass",
            None,
            "/apis/scheduling.k8s.io/v1/priorityclasses",
        ),
        (
            "storage.k8s.io/v1",
            "CSIStorageCapacity",
            "a",
            "/apis/storage.k8s.io/v1/namespaces/a/csistoragecapacities",
        ),
    ],
)
def test_where_objects_of_any_kind_are_created(version, kind, namespace, path):
    metadata = {"name": "x"} | ({"namespace": namespace} if namespace else {})
    assert collection_path({"apiVersion": version, "kind": kind, "metadata": metadata}) == path


def test_the_api_server_audits_as_asked_and_at_the_least_cost():
    options = World().bed.options
    ports = {name: 20_000 + index for index, name in enumerate(needed_ports(options))}
    flags = arguments(API_SERVER, Plan(layout=Layout(Path("/state")), ports=ports, options=options))
    assert "--audit-log-mode=blocking" in flags
    assert options.audit_policy == POLICY


@pytest.mark.parametrize(
    ("key", "fresh"), [("node.kubernetes.io/not-ready", True), ("own", False), (None, False)]
)
def test_a_node_is_fresh_until_its_taint_is_lifted(key, fresh):
    taints = [] if key is None else [{"key": key, "effect": "NoSchedule"}]
    assert is_fresh(make_node("n", taints=taints)) is fresh


class _StandingBed(Bed):
    """A bed that has a folder, and nothing in it."""

    folder = Path()

    @property
    def state_dir(self) -> Path:
        return self.folder


class TestOrder:
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        world = World(make_bed=_StandingBed)
        world.bed.folder = tmp_path
        return world

    def test_there_is_no_restore_before_a_snapshot(self, world):
        with pytest.raises(TestbedError, match=r"snapshot\(\) comes first"):
            world.restore()

    def test_there_is_no_second_snapshot(self, world, tmp_path):
        Layout(tmp_path).etcd_snapshot.mkdir()
        with pytest.raises(TestbedError, match="has a snapshot already"):
            world.snapshot()

    def test_states_are_kept_apart_by_name(self, world, tmp_path):
        Layout(tmp_path).etcd_snapshot.with_name("etcd-snapshot-small").mkdir()
        with pytest.raises(TestbedError, match="has a snapshot already"):
            world.snapshot("small")
        with pytest.raises(TestbedError, match="nothing to restore"):
            world.restore("large")


def test_a_world_that_is_not_open_has_no_files():
    with pytest.raises(TestbedError, match="is not open"):
        _ = World().kubeconfig
