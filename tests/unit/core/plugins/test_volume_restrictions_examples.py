"""VolumeRestrictions by example: disks and claims that only one pod may use."""

import pytest

from tests.unit.core.plugins.plugin_bench import made
from tests.unit.core.plugins.storage_bench import StorageBench, claim, pod

NO_DISK = ("node(s) had no available disk", True)
USED_ELSEWHERE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)
IN_USE = (USED_ELSEWHERE, True)


@pytest.fixture
def bench():
    return StorageBench(made("VolumeRestrictions"), a={}, b={})


def disk(*, read_only=False):
    return {"gcePersistentDisk": {"pdName": "d", "readOnly": read_only}}


def test_a_disk_that_is_written_is_used_once_on_a_node(bench):
    bench.place(pod(disk(), name="other", node="a"))
    assert bench.rejections(pod(disk())) == [NO_DISK, None]


def test_readers_share_a_disk(bench):
    bench.place(pod(disk(read_only=True), name="other", node="a"))
    assert bench.rejections(pod(disk(read_only=True))) == [None, None]


def test_a_read_write_once_pod_claim_is_used_by_one_pod_of_the_cluster(bench):
    bench.put(claim("c", mode="ReadWriteOncePod")).place(pod("c", name="other", node="a"))
    assert bench.rejections(pod("c")) == [IN_USE, IN_USE]


def test_a_pod_without_such_volumes_may_go_anywhere(bench):
    assert bench.skips(pod({"emptyDir": {}}))
