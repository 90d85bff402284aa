"""What came of nodes in searches for room, and which pods that holds on to."""

from k8s_scheduler.api.resources import pod_requests
from k8s_scheduler.core.engine.outcomes import Outcomes
from k8s_scheduler.core.framework.reads import Reads
from k8s_scheduler.core.plugins.default_preemption import NO_VICTIMS
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.delta import PlacedPod
from tests.builders import make_node, make_pod
from tests.unit.core.harness import Harness


def test_no_promised_pod_is_held_once_nobody_searches():
    h = Harness()
    for name in ("n0", "n1"):
        h.node(make_node(name).obj())
    known, reads = Outcomes(h.core._cache), Reads()
    promised = (PlacedPod(make_pod("vip").obj(), pod_requests(make_pod("vip").obj()), ()),)
    known.catch_up({})
    known.remember({NodeRow(0): NO_VICTIMS, NodeRow(1): NO_VICTIMS}, {NodeRow(0): promised}, reads)
    assert known.recall(NodeRow(0), promised) == NO_VICTIMS
    known.forget_pods()
    assert known.recall(NodeRow(0), promised) is None
    assert known.recall(NodeRow(0), ()) is None, "it was known with the promised pod alone"
    assert known.recall(NodeRow(1), ()) == NO_VICTIMS
