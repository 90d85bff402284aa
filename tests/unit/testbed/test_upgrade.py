"""What two versions in turn must not do: lose a pod, bind one twice, overfill a node."""

from types import SimpleNamespace

import pytest

from testbed import upgrade
from testbed.errors import TestbedError
from testbed.upgrade import NODES, PODS_PER_PHASE, SLOTS, install, judge


def pod(name, node="n0"):
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"nodeName": node}}


def binding(name, *, successful=True):
    return SimpleNamespace(target_uid=f"uid-{name}", is_successful_binding=successful)


def test_pods_with_one_binding_each_and_room_are_well():
    pods = [pod(f"p{n}") for n in range(SLOTS)]
    entries = [binding(f"p{n}") for n in range(SLOTS)]
    assert judge(pods, [*entries, binding("p0", successful=False)]) == []


def test_a_pod_that_waits_is_told():
    assert judge([pod("a", node="")], []) == ["a has no node"]


@pytest.mark.parametrize("times", [0, 2])
def test_a_pod_that_was_not_bound_once_is_told(times):
    assert judge([pod("a")], [binding("a")] * times) == [f"a was bound {times} times"]


def test_a_node_that_is_too_full_is_told():
    names = [f"p{n}" for n in range(SLOTS + 1)]
    (problem,) = judge([pod(name) for name in names], [binding(name) for name in names])
    assert problem == f"n0 has {SLOTS + 1} pods and room for {SLOTS}"


def test_all_pods_together_nearly_fill_the_nodes():
    """So a leader that did not know of the last one's Bindings would overfill some."""
    wanted = (len(upgrade.HANDOVERS) + 1) * PODS_PER_PHASE
    assert 0.9 * NODES * SLOTS < wanted < NODES * SLOTS


def test_each_way_is_gone_gently_and_not():
    assert sorted(upgrade.HANDOVERS) == [(v, c) for v in ("new", "old") for c in (False, True)]


def test_a_revision_that_is_none_is_named(tmp_path):
    with pytest.raises(TestbedError, match="git archive --format=tar no-such-revision: exit code"):
        install("no-such-revision", tmp_path)
