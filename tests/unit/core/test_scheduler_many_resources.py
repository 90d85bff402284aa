"""Pods and nodes that name thousands of resources: others do not pay, and all is given back.

Bytes are those that Python allocates, numpy's arrays included; what others pay is CPU before and
meanwhile, compared in one run.
"""

import gc
import statistics
import time
import tracemalloc

import pytest

from k8s_scheduler.api.config.limits import NodeLimits, PodLimits
from k8s_scheduler.core.framework.diagnosis import MESSAGE_BYTES
from k8s_scheduler.core.messages.incoming import Restore
from k8s_scheduler.core.messages.outgoing import PatchCondition
from k8s_scheduler.core.plugins.shortages import MOST_REASONS
from k8s_scheduler.core.setup import Setup
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import Harness, only, profile

NODES = 200
NAMES = 800
# For each name of each object. A column of its own would take twelve thousand, and its making more.
BYTES_PER_NAME = 3072
BYTES_LEFT = 100


def names(count, first=0):
    return {f"example.com/r{number}": "1" for number in range(first, first + count)}


def node_of(name, **more):
    node = make_node(name).offers(cpu="8", memory="32Gi", pods="110")
    node.raw["status"]["allocatable"] |= more
    return node.obj()


def pod_of(name, requests, on=""):
    pod = make_pod(name)
    pod.raw["spec"]["containers"] = [{"name": "c", "resources": {"requests": requests}}]
    return (pod.on(on) if on else pod).obj()


class Cluster(Harness):
    """A core with nodes and pods on them."""

    def __init__(self, nodes: int = NODES) -> None:
        # What is meant here is what happens without the limits.
        limits = {"pod_limits": PodLimits(resources=10**6, spec_bytes=10**6)}
        limits["node_limits"] = NodeLimits(resources=10**6)
        super().__init__(Setup(profiles=(profile(),), **limits))
        for number in range(nodes):
            self.node(node_of(f"n{number}"))
            self.pod(pod_of(f"old{number}", {"cpu": "1", "memory": "1Gi"}, on=f"n{number}"))
        self.forget()

    def forget(self) -> None:
        """Hold nothing that only tests hold."""
        self.told.clear()
        self.out.clear()

    def try_pod(self, pod):
        """Let a pod be decided on, which fits nowhere; return what it is told."""
        self.pod(pod)
        (found,) = only(PatchCondition, self.schedule())
        return found.message


class PlacedOnNoNode:
    """A pod whose author named a node that there is not."""

    def come(self, cluster):
        cluster.pod(pod_of("evil", names(NAMES), on="nowhere"))

    def go(self, cluster):
        cluster.drop_pod(pod_of("evil", {}))


class PlacedOnANode(PlacedOnNoNode):
    """A pod on a node that offers none of it."""

    def come(self, cluster):
        cluster.pod(pod_of("evil", names(NAMES), on="n3"))


class PlacedByMany:
    """Many small pods, with one name each."""

    def come(self, cluster):
        for number in range(NAMES // 2):
            pod = pod_of(f"evil{number}", names(1, number), on=f"n{number % NODES}")
            cluster.pod(pod)

    def go(self, cluster):
        for number in range(NAMES // 2):
            cluster.drop_pod(pod_of(f"evil{number}", {}))


class OfferedByANode:
    """A kubelet that reports names of its own."""

    def come(self, cluster):
        cluster.node(node_of("n3", **names(NAMES)))

    def go(self, cluster):
        cluster.node(node_of("n3"))


class OfferedByANodeThatGoes(OfferedByANode):
    """The same, and the node is deleted."""

    def come(self, cluster):
        cluster.node(node_of("evil", **names(NAMES)))

    def go(self, cluster):
        cluster.drop_node("evil")


class OfferedByMany:
    """Many nodes with a few odd names each."""

    def come(self, cluster):
        for number in range(NAMES // 5):
            cluster.node(node_of(f"n{number}", **names(5, 5 * number)))

    def go(self, cluster):
        for number in range(NAMES // 5):
            cluster.node(node_of(f"n{number}"))


class OfferedAndTaken:
    """A node that offers names, and a pod there that takes them."""

    def come(self, cluster):
        cluster.node(node_of("n3", **names(NAMES)))
        cluster.pod(pod_of("evil", names(NAMES), on="n3"))

    def go(self, cluster):
        cluster.node(node_of("n3"))
        cluster.drop_pod(pod_of("evil", {}))


STAYING = [
    PlacedOnNoNode,
    PlacedOnANode,
    PlacedByMany,
    OfferedByANode,
    OfferedByANodeThatGoes,
    OfferedByMany,
    OfferedAndTaken,
]


@pytest.fixture
def cluster():
    """Return a cluster; what Python allocates from then on is counted."""
    found = Cluster()
    tracemalloc.start()
    yield found
    tracemalloc.stop()


def allocated():
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("case", STAYING, ids=lambda case: case.__name__)
def test_memory_is_as_much_as_is_named_and_all_is_given_back(case, cluster):
    case().come(cluster)
    case().go(cluster)
    cluster.forget()
    before = allocated()
    tracemalloc.reset_peak()
    case().come(cluster)
    cluster.forget()
    peak = tracemalloc.get_traced_memory()[1]
    assert peak - before < NAMES * BYTES_PER_NAME
    case().go(cluster)
    cluster.forget()
    # A few bytes for each name, where there were hundreds: logs of what changed have grown.
    assert allocated() - before < NAMES * BYTES_LEFT
    amounts = inside(cluster.core).cache.nodes.amounts
    assert amounts.with_columns(names(NAMES)) == ()
    assert amounts._slot_count == 8


def seconds(deed, number):
    started = time.process_time()
    deed(number)
    return time.process_time() - started


class Others:
    """What others do: a pod is bound, a node changes, a pod is decided on."""

    def __init__(self, cluster):
        self.cluster = cluster

    def bind(self, number):
        """Place a pod; on the node of the odd ones, now and then."""
        self.cluster.pod(pod_of(f"b{number}", {"cpu": "1m"}, on=f"n{number % 5}"))

    def unbind(self, number):
        self.cluster.drop_pod(pod_of(f"b{number}", {}))

    def change(self, number):
        self.cluster.node(node_of("n9", cpu=str(8 + number % 2)))

    def decide(self, number):
        pod = pod_of(f"d{number}", {"cpu": "1m", "memory": "1Mi"})
        self.cluster.pod(pod)
        assert self.cluster.binds()
        self.cluster.drop_pod(pod)

    def costs(self):
        """Return the usual CPU seconds of each."""
        deeds = (self.bind, self.unbind, self.change, self.decide)
        rounds = [[seconds(deed, number) for deed in deeds] for number in range(60)]
        self.cluster.forget()
        return [statistics.median(column) for column in zip(*rounds, strict=True)]


@pytest.mark.parametrize("case", STAYING, ids=lambda case: case.__name__)
def test_others_pay_nothing_for_it(case):
    cluster = Cluster()
    others = Others(cluster)
    others.costs()
    before = others.costs()
    case().come(cluster)
    others.costs()
    meanwhile = others.costs()
    assert all(now < 3 * then for now, then in zip(meanwhile, before, strict=True))


def test_a_placed_pod_that_changes_costs_little_more_than_its_coming():
    """Whether it takes less than before is asked of each of its names once."""
    cluster = Cluster(nodes=5)
    many = names(10_000)
    pods = [pod_of("evil", many | {"cpu": cpu}, on="n3") for cpu in "123"]
    coming, *changing = [seconds(cluster.pod, pod) for pod in pods]
    assert min(changing) < 4 * coming


class TestPending:
    """A pod that waits and asks for many resources."""

    def test_no_array_of_names_and_nodes_is_made(self, cluster):
        cluster.try_pod(pod_of("first", names(NAMES)))
        cluster.drop_pod(pod_of("first", {}))
        cluster.forget()
        before = allocated()
        tracemalloc.reset_peak()
        cluster.try_pod(pod_of("p", names(NAMES, first=NAMES)))
        assert tracemalloc.get_traced_memory()[1] - before < NAMES * BYTES_PER_NAME
        cluster.drop_pod(pod_of("p", {}))
        cluster.forget()
        # What is left are names: verdicts and shapes are remembered for a while.
        assert allocated() - before < NAMES * BYTES_PER_NAME / 2

    def test_others_are_decided_on_as_fast_while_it_waits(self):
        cluster = Cluster()
        others = Others(cluster)
        others.costs()
        before = others.costs()
        cluster.try_pod(pod_of("p", names(NAMES)))
        others.costs()
        # A change of a node may have helped it: it is judged again before others are.
        *meanwhile, decide = others.costs()
        assert all(now < 3 * then for now, then in zip(meanwhile, before, strict=False))
        # With so few nodes the decision itself takes a tenth of a millisecond.
        assert decide < 10 * before[-1]

    def test_it_is_told_each_of_them_in_order(self):
        cluster = Cluster(nodes=3)
        asked = names(20)
        texts = sorted(f"3 Insufficient {name}" for name in asked)
        message = cluster.try_pod(pod_of("p", asked))
        assert message == f"0/3 nodes are available: {', '.join(texts)}."

    def test_it_is_told_where_some_of_them_are(self):
        """Offered by one node, taken there, taken where they are not offered, short of cpu."""
        cluster = Cluster(nodes=3)
        cluster.node(node_of("n1", **names(12)))
        cluster.pod(pod_of("a", names(2), on="n1"))
        cluster.pod(pod_of("b", names(1, first=15), on="n2"))
        asked = names(20)
        counts = {name: 3 if number < 2 or number >= 12 else 2 for number, name in enumerate(asked)}
        texts = [f"{count} Insufficient {name}" for name, count in counts.items()]
        texts += ["3 Insufficient cpu"]
        message = cluster.try_pod(pod_of("p", {"cpu": "8", **asked}))
        assert message == f"0/3 nodes are available: {', '.join(sorted(texts))}."

    def test_it_goes_where_all_of_them_are(self):
        cluster = Cluster(nodes=4)
        cluster.node(node_of("n2", **names(100)))
        cluster.pod(pod_of("p", names(100)))
        assert [bind.node for bind in cluster.binds()] == ["n2"]

    def test_it_is_woken_by_the_node_that_has_them_all(self):
        cluster = Cluster(nodes=4)
        cluster.try_pod(pod_of("p", names(100)))
        cluster.node(node_of("n1", **names(99)))
        assert cluster.binds() == []
        cluster.node(node_of("n2", **names(100)))
        cluster.tick(20)
        assert [bind.node for bind in cluster.binds()] == ["n2"]

    def test_a_long_text_ends_with_how_many_more_there_are(self):
        cluster = Cluster(nodes=2)
        message = cluster.try_pod(pod_of("p", names(2000)))
        start, _, rest = message.partition(", ... and ")
        shown = start.removeprefix("0/2 nodes are available: ").split(", ")
        assert rest == f"{2000 - len(shown)} more."
        assert shown == sorted(f"2 Insufficient {name}" for name in names(2000))[: len(shown)]
        assert MESSAGE_BYTES - 100 < len(message) < MESSAGE_BYTES + 100

    def test_one_verdict_names_a_limited_number_of_them(self):
        cluster = Cluster(nodes=2)
        pod = pod_of("p", names(MOST_REASONS + 7))
        cluster.try_pod(pod)
        judgement = cluster.core.judge(pod)
        ((verdict, nodes),) = judgement.diagnosis.verdicts
        assert nodes == 2
        assert len(verdict.reasons) == MOST_REASONS + 1
        assert verdict.reasons[-1].text == "Insufficient 7 more resources"
        assert not verdict.resolvable


class TestOdd:
    """More names than there are columns: decisions are the same."""

    @pytest.fixture
    def cluster(self):
        cluster = Cluster(nodes=6)
        cluster.node(node_of("n4", **names(80)))
        return cluster

    def test_a_pod_goes_where_its_resource_is(self, cluster):
        for name in ("example.com/r1", "example.com/r79"):
            cluster.pod(pod_of(f"p-{name[-2:]}", {name: "1"}))
            assert [bind.node for bind in cluster.binds()] == ["n4"]
            # It is taken.
            message = cluster.try_pod(pod_of(f"q-{name[-2:]}", {name: "1"}))
            assert message == f"0/6 nodes are available: 6 Insufficient {name}."

    def test_a_core_that_is_restored_decides_the_same(self, cluster):
        cluster.pod(pod_of("a", {"example.com/r79": "1"}, on="n4"))
        cluster.pod(pod_of("b", {"example.com/none": "1"}, on="n1"))
        twin = Harness()
        twin.tell(Restore(twin.now, cluster.core.checkpoint()))
        for core in (cluster, twin):
            core.out.clear()
            for number in (1, 78, 79, 80):
                core.pod(pod_of(f"p{number}", {f"example.com/r{number}": "1"}))
            core.schedule()
        assert cluster.out == twin.out
        assert {instruction.name for instruction in only(PatchCondition, twin.out)} == {
            "p79",
            "p80",
        }

    def test_what_several_nodes_offer_has_a_column(self, cluster):
        for number in range(3):
            cluster.node(node_of(f"n{number}", **{"nvidia.com/gpu": "8"}))
        amounts = inside(cluster.core).cache.nodes.amounts
        assert amounts.with_columns(["nvidia.com/gpu"]) == ("nvidia.com/gpu",)
        assert len(amounts.with_columns(names(80))) == 58
