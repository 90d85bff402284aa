"""DefaultBinder by example: the pod's node is told to the API server by a Binding."""

from tests.builders import make_node, make_pod
from tests.unit.core.engine.cores import FullHarness
from tests.unit.core.plugins.plugin_bench import made


def test_it_binds_every_pod():
    assert made("DefaultBinder").binds(make_pod("p").obj())


def test_a_binding_names_the_pod_by_its_uid_and_the_node():
    h = FullHarness()
    h.node(make_node("n").obj())
    h.pod(make_pod("p").namespace("a").uid("1234").obj())
    [bind] = h.binds()
    assert (bind.namespace, bind.name, bind.uid, bind.node) == ("a", "p", "1234", "n")


def test_a_binding_that_is_refused_is_tried_again_after_a_backoff():
    h = FullHarness()
    h.node(make_node("n").obj())
    h.pod(make_pod("p").obj())
    [bind] = h.binds()
    h.result(bind, bound=False, message="no luck")
    assert h.binds() == []
    h.tick(3)
    [again] = h.binds()
    assert (again.name, again.node, again.attempt > bind.attempt) == ("p", "n", True)
