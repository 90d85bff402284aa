"""NodePorts: thousands of wanted ports cost as much as their users are, not as the cluster is."""

import msgspec
import pytest

from k8s_scheduler.api.node import Node
from k8s_scheduler.api.ports import ANY_ADDRESS, HostPort
from k8s_scheduler.core.plugins.node_ports import NodePorts
from tests.builders import make_pod
from tests.unit.core.plugins.storage_bench import StorageBench

ROWS = 300
PORTS = 200
TAKEN = ("node(s) didn't have free ports for the requested pod ports", True)


class CountedUsers(dict):
    """The users of a port, and how often any was looked for or looked at."""

    looks = 0

    def __contains__(self, row):
        CountedUsers.looks += 1
        return super().__contains__(row)

    def __iter__(self):
        CountedUsers.looks += len(self)
        return super().__iter__()

    def items(self):
        CountedUsers.looks += len(self)
        return super().items()


def pod_with_ports(name, count=PORTS, node=""):
    pod = make_pod(name).uid(f"uid-{name}").on(node) if node else make_pod(name)
    ports = [{"containerPort": 1, "hostPort": 1000 + number} for number in range(count)]
    pod.raw["spec"]["containers"] = [{"name": "c", "ports": ports}]
    return pod.raw


@pytest.fixture
def bench(monkeypatch):
    """Many nodes, and a row without one: whoever looks at all nodes does not look at all rows."""
    found = StorageBench(NodePorts(), **{f"n{number}": {} for number in range(ROWS)})
    found.cache.put_node(msgspec.convert({"metadata": {"name": "gone"}}, Node))
    found.cache.put_node(msgspec.convert({"metadata": {"name": "last"}}, Node))
    found.cache.remove_node("gone")
    ports = found.cache.nodes.ports
    users = ports.users
    monkeypatch.setattr(ports, "users", lambda *port: CountedUsers(users(*port)))
    CountedUsers.looks = 0
    return found


def test_ports_that_few_use_are_looked_up_where_they_are_used(bench):
    bench.place(pod_with_ports("other", node="n7"))
    rejections = bench.rejections(pod_with_ports("p"))
    assert [number for number, found in enumerate(rejections) if found == TAKEN] == [7]
    assert CountedUsers.looks <= 4 * PORTS


def test_of_one_row_only_that_one_is_looked_at(bench):
    for number in range(ROWS):
        bench.place(pod_with_ports(f"other{number}", 3, node=f"n{number}"))
    prepared = bench.prepare(pod_with_ports("p", 3))
    assert bench.judge(prepared, "last") == [None]
    assert bench.judge(prepared, "n3") == [TAKEN]
    assert CountedUsers.looks <= 30


def test_nothing_is_looked_at_once_all_nodes_are_out_of_question(bench):
    for number in range(ROWS):
        bench.place(pod_with_ports(f"other{number}", 20, node=f"n{number}"))
    bench.place(pod_with_ports("other", 20, node="last"))
    assert set(bench.rejections(pod_with_ports("p", 20))) == {TAKEN}
    assert CountedUsers.looks <= 5 * ROWS


def test_a_dry_run_without_a_pod_asks_of_each_port_once(bench):
    bench.place(pod_with_ports("other", node="n7"))
    row = bench.cache.nodes.row_of("n7")
    delta = bench.cache.delta(row)
    delta.remove(bench.cache.pods_on(row)[0])
    prepared = bench.prepare(pod_with_ports("p"))
    assert bench.judge(prepared, "n7", delta=delta) == [None]
    assert len(delta._ports_held) == PORTS
    assert bench.judge(prepared, "n7", delta=delta.copy()) == [None]


@pytest.mark.parametrize("ip", [ANY_ADDRESS, "10.0.0.1"])
@pytest.mark.parametrize(
    "addresses", [(), (ANY_ADDRESS,), ("10.0.0.1",), ("10.0.0.2",), ("10.0.0.2", ANY_ADDRESS)]
)
def test_a_port_is_taken_where_one_of_its_holders_conflicts(ip, addresses):
    wanted = HostPort(ip, "TCP", 80)
    held = [HostPort(address, "TCP", 80) for address in addresses]
    assert wanted.is_taken(addresses) == any(wanted.conflicts(other) for other in held)
