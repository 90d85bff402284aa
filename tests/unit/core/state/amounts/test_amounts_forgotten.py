"""Amounts that only pods asked for which are gone are not remembered for good."""

from k8s_scheduler.api import quantity
from k8s_scheduler.api.resources import REMEMBERED
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FullHarness

TWENTY_MINUTES = 1200


def test_amounts_of_pods_that_are_gone_are_forgotten_after_a_while():
    core = FullHarness()
    core.node(make_node("n").offers(cpu="8", pods="1000").obj())
    pods = [make_pod(f"p{i}").request(cpu=f"{i}m").on("n").obj() for i in range(1, 300)]
    for pod in pods:
        core.pod(pod)
    shared = inside(core.core).cache
    assert len(REMEMBERED) >= 299
    assert len(shared._requests) >= 299
    for pod in pods:
        core.drop_pod(pod)
    for _ in range(TWENTY_MINUTES):
        core.tick(1.0)
    assert len(REMEMBERED) == 0
    assert len(shared._requests) == 0
    assert quantity._remembered.cache_info().currsize == 0


def test_what_is_forgotten_is_worked_out_again():
    core = FullHarness()
    core.node(make_node("n").offers(cpu="8", pods="1000").obj())
    core.pod(make_pod("before").request(cpu="250m").on("n").obj())
    for _ in range(TWENTY_MINUTES):
        core.tick(1.0)
    core.pod(make_pod("after").request(cpu="250m").on("n").obj())
    taken = inside(core.core).cache.nodes.column("requested/cpu")
    assert taken[0] == 500
