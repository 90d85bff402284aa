"""NodeVolumeLimits by example: a driver attaches only so many volumes to a node."""

import pytest

from tests.unit.core.plugins.plugin_bench import made
from tests.unit.core.plugins.storage_bench import (
    StorageBench,
    claim,
    csi,
    csi_node,
    pod,
    volume,
)

TOO_MANY = ("node(s) exceed max volume count", True)


@pytest.fixture
def bench():
    """Two nodes to which the driver csi.a attaches two volumes; claims c1 to c3 of one each."""
    found = StorageBench(made("NodeVolumeLimits"), a={}, b={})
    found.put(csi_node("a", csi_a=2), csi_node("b", csi_a=2))
    for number in (1, 2, 3):
        found.put(claim(f"c{number}", to=f"v{number}"))
        found.put(volume(f"v{number}", **csi("csi.a", f"v{number}")))
    return found


def test_a_pod_may_have_as_many_volumes_as_the_driver_attaches(bench):
    assert bench.rejections(pod("c1", "c2")) == [None, None]
    assert bench.rejections(pod("c1", "c2", "c3")) == [TOO_MANY, TOO_MANY]


def test_volumes_of_other_pods_of_the_node_count(bench):
    bench.place(pod("c1", "c2", name="other", node="a"))
    assert bench.rejections(pod("c3")) == [TOO_MANY, None]


def test_a_volume_that_is_attached_already_does_not_count_again(bench):
    bench.place(pod("c1", "c2", name="other", node="a"))
    assert bench.rejections(pod("c1")) == [None, None]


def test_without_a_limit_of_the_driver_there_is_none(bench):
    bench.put(csi_node("a", csi_a=None))
    assert bench.rejections(pod("c1", "c2", "c3")) == [None, TOO_MANY]
