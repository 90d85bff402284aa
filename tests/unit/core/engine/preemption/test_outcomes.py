"""What came of nodes in searches for room: what it follows, and which pods it holds on to."""

import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.resources import pod_requests
from k8s_scheduler.core.engine.preemption.outcomes import Outcomes
from k8s_scheduler.core.engine.shapes.validity import ClusterReads
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.messages.outgoing import Evict
from k8s_scheduler.core.plugins.default_preemption import NO_VICTIMS
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from k8s_scheduler.core.state.delta import PlacedPod
from k8s_scheduler.core.state.rows import NodeRow
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import promised, spread, zoned
from tests.unit.core.engine.preemption.searching import Search, boss, hungry, lesser
from tests.unit.core.harness import Harness, only


def test_no_promised_pod_is_held_once_nobody_searches():
    h = Harness()
    for name in ("n0", "n1"):
        h.node(make_node(name).obj())
    known, reads = Outcomes(inside(h.core).cache), Reads()
    promised = (PlacedPod(make_pod("vip").obj(), pod_requests(make_pod("vip").obj()), ()),)
    known.catch_up({})
    known.remember({NodeRow(0): NO_VICTIMS, NodeRow(1): NO_VICTIMS}, {NodeRow(0): promised}, reads)
    assert known.recall(NodeRow(0), promised) == NO_VICTIMS
    known.forget_pods()
    assert known.recall(NodeRow(0), promised) is None
    assert known.recall(NodeRow(0), ()) is None, "it was known with the promised pod alone"
    assert known.recall(NodeRow(1), ()) == NO_VICTIMS


def keeps_wide_counts(monkeypatch):
    monkeypatch.setattr(PodCounter, "version", 0)


def keeps_promises(monkeypatch):
    original = Outcomes.recall
    monkeypatch.setattr(Outcomes, "recall", lambda *args: original(*args[:2], ()))
    remember = Outcomes.remember
    monkeypatch.setattr(
        Outcomes, "remember", lambda self, found, _, reads: remember(self, found, {}, reads)
    )


def keeps_objects(monkeypatch):
    monkeypatch.setattr(ClusterReads, "are_same", lambda *_: True)


class TestOutcomes:
    """What dry runs read beyond the row: a change of it is seen."""

    def victims(self, s, pod):
        s.pod(pod.obj())
        out = s.search()
        s.drop_pod(pod.obj())
        return [e.victim.name for e in only(Evict, out)]

    @pytest.mark.parametrize(
        ("promise", "plant"),
        [
            ("the_emptiest_domain_elsewhere", keeps_wide_counts),
            ("a_promise_to_another_pod", keeps_promises),
            ("an_object_and_a_number_that_a_filter_looks_up", keeps_objects),
        ],
    )
    def test_each_of_these_fails_if_it_is_not_looked_at(self, monkeypatch, promise, plant):
        plant(monkeypatch)
        with pytest.raises(AssertionError):
            getattr(self, f"test_{promise}")(monkeypatch)

    def test_the_emptiest_domain_elsewhere(self, monkeypatch):
        s = Search(monkeypatch, nodes=2)
        for name in ("n0", "n1"):
            s.drop_pod(boss(name).obj())
        s.pod(make_pod("x0").request(cpu="3").priority(100).label(app="x").on("n0").obj())
        s.node(zoned("n1", cpu="1").obj())
        # n0 has one of them, n1 none: another one on n0 would be too many.
        picky = spread(hungry("p", cpu="1"), key="host", app="x").label(app="x")
        s.pod(make_pod("y1").request(cpu="0").priority(100).on("n1").obj())
        s.pod(make_pod("z1").request(cpu="1").priority(100).on("n1").obj())
        s.drop_pod(lesser("n1").obj())
        assert self.victims(s, picky) == []
        s.pod(make_pod("x1").request(cpu="0").priority(100).label(app="x").on("n1").obj())
        assert self.victims(s, picky) == ["low-n0"]

    def test_a_promise_to_another_pod(self, monkeypatch):
        s = Search(monkeypatch, nodes=1)
        p = hungry("p", cpu="1")
        vip = promised(hungry("vip", cpu="1", priority=50).gate("x"), "n0")
        s.pod(vip.obj())
        assert self.victims(s, p) == []
        s.drop_pod(vip.obj())
        assert self.victims(s, p) == ["low-n0"]

    def test_an_object_and_a_number_that_a_filter_looks_up(self, monkeypatch):
        s = Search(monkeypatch, nodes=2)
        state = inside(s.core).cache
        for look, change in (
            (
                lambda reads: reads.object(("get", Kind.NAMESPACE, "", "x"), None),
                lambda: s.object(Kind.NAMESPACE, "x"),
            ),
            (
                lambda reads: reads.scalar("node_count", len(state.nodes)),
                lambda: s.node(zoned("n9").obj()),
            ),
        ):
            known, reads = Outcomes(state), Reads()
            look(reads)
            known.catch_up({})
            known.remember({NodeRow(0): NO_VICTIMS}, {}, reads)
            s.pod(make_pod("other").on("n1").obj())
            known.catch_up({})
            assert known.recall(NodeRow(0), ()) == NO_VICTIMS
            change()
            known.catch_up({})
            assert known.recall(NodeRow(0), ()) is None


def test_what_is_remembered_goes_when_label_values_are_numbered_anew(monkeypatch):
    """Terms that it rests on hold such numbers."""
    s = Search(monkeypatch, nodes=20)
    s.pod(hungry("first").obj())
    s.search()
    tried = s.tried_nodes
    inside(s.core).cache.nodes.labels._renumber()
    s.pod(hungry("second").obj())
    s.search()
    assert s.tried_nodes == 2 * tried > 0
