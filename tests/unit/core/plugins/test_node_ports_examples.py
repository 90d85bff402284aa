"""NodePorts by example: a host port is taken once on a node, by address and protocol."""

import pytest

from tests.builders import make_node, make_pod
from tests.unit.core.plugins.plugin_bench import PluginBench, made

TAKEN = ("node(s) didn't have free ports for the requested pod ports", True)


def using(name, port, *, ip="", protocol="TCP", node=""):
    """Return a pod whose container uses a port of its node."""
    pod = make_pod(name)
    used = {"containerPort": 80, "hostPort": port, "hostIP": ip, "protocol": protocol}
    pod.raw["spec"]["containers"] = [{"name": "c", "ports": [used]}]
    return pod.on(node) if node else pod


def bench(*pods):
    return PluginBench(made("NodePorts"), make_node("a"), make_node("b")).place(*pods)


def test_a_pod_without_host_ports_may_go_anywhere():
    pod = make_pod("p")
    pod.raw["spec"]["containers"] = [{"name": "c", "ports": [{"containerPort": 80}]}]
    assert bench(using("other", 80, node="a")).skips(pod)


def test_a_port_that_is_taken_rejects_the_node_and_preemption_can_help():
    assert bench(using("other", 80, node="a")).rejections(using("p", 80)) == [TAKEN, None]


@pytest.mark.parametrize(
    ("held", "wanted", "verdict"),
    [
        pytest.param({}, {"port": 81}, None, id="another port"),
        pytest.param({}, {"protocol": "UDP"}, None, id="another protocol"),
        pytest.param({"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}, None, id="another address"),
        pytest.param({"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}, TAKEN, id="the same address"),
        pytest.param({"ip": "10.0.0.1"}, {}, TAKEN, id="all addresses against one"),
        pytest.param({}, {"ip": "10.0.0.1"}, TAKEN, id="one address against all"),
        pytest.param({"ip": "0.0.0.0"}, {}, TAKEN, id="two ways to write all addresses"),
    ],
)
def test_ports_collide_by_number_protocol_and_address(held, wanted, verdict):
    other = using("other", 80, node="a", **held)
    assert bench(other).rejections(using("p", **{"port": 80} | wanted)) == [verdict, None]
