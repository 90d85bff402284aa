"""PrioritySort by example: important pods first, then those that entered the queue earlier."""

from tests.builders import make_node, make_pod
from tests.unit.core.engine.cores import FullHarness
from tests.unit.core.plugins.plugin_bench import made


def order(*pods):
    """Return the names of pods in the order of the queue, given the times when they entered."""
    plugin = made("PrioritySort")
    keyed = [
        (plugin.sort_key(pod.obj(), entered), pod.raw["metadata"]["name"]) for pod, entered in pods
    ]
    return [name for _, name in sorted(keyed)]


def test_the_more_important_pod_goes_first_however_late_it_came():
    early, late = make_pod("early").priority(1), make_pod("late").priority(1000)
    assert order((early, 1.0), (late, 99.0)) == ["late", "early"]


def test_of_equally_important_pods_the_earlier_one_goes_first():
    assert order((make_pod("second"), 2.0), (make_pod("first"), 1.0)) == ["first", "second"]


def test_a_pod_without_a_priority_counts_as_zero():
    less, more = make_pod("less").priority(-1), make_pod("more").priority(1)
    assert order((less, 0.0), (make_pod("none"), 0.0), (more, 0.0)) == ["more", "none", "less"]


def test_it_sorts_the_queue():
    h = FullHarness()
    for name, priority in (("low", 1), ("high", 3), ("middle", 2)):
        h.pod(make_pod(name).priority(priority).obj())
    h.node(make_node("n").obj())
    assert [bind.name for bind in h.binds()] == ["high", "middle", "low"]
