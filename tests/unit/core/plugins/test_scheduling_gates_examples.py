"""SchedulingGates by example: a gated pod is not tried until its last gate is removed."""

from tests.builders import make_node, make_pod
from tests.unit.core.engine.cores import FullHarness
from tests.unit.core.plugins.plugin_bench import made


def test_a_pod_without_gates_may_enter_the_queue():
    assert made("SchedulingGates").pre_enqueue(make_pod("p").obj()) is None


def test_the_gates_that_are_still_closed_are_named():
    found = made("SchedulingGates").pre_enqueue(make_pod("p").gate("quota", "image").obj())
    assert found == "waiting for scheduling gates: [quota image]"


def test_a_gated_pod_is_tried_when_its_last_gate_is_removed():
    h = FullHarness()
    h.node(make_node("n").obj())
    h.pod(make_pod("p").gate("quota", "image").obj())
    assert h.binds() == []
    h.pod(make_pod("p").gate("image").version(2).obj())
    assert h.binds() == []
    h.pod(make_pod("p").version(3).obj())
    assert [(bind.node, bind.attempt) for bind in h.binds()] == [("n", 1)]


def test_nothing_is_told_of_a_gated_pod():
    # It was not tried: the API server has set its condition already.
    h = FullHarness()
    h.pod(make_pod("p").gate("quota").obj())
    h.tick(600)
    assert h.schedule() == []
    assert h.out == []
