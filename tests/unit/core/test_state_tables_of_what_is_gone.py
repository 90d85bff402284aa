"""Tables that were large for one object are small again once it is gone.

Python keeps the memory of entries that were deleted from a dict. An object of 1.5 MB brings tens of
thousands of keys of its own, and what it leaves behind would last as long as the process.
"""

import gc
import tracemalloc

import pytest

from k8s_scheduler.api.node import Node
from tests.builders import make_node, make_pod
from tests.unit.core.engine.shapes.test_shape_cache_bytes import cluster

KEYS = 4000
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def odd_node(number=0):
    return make_node(f"odd{number}").offers(cpu="8", memory="1Gi", pods="9")


def odd_nodes():
    return [odd_node(number) for number in range(200)]


def node_with_labels():
    node = odd_node()
    node.raw["metadata"]["labels"] = {f"l{each}": "v" for each in range(KEYS)}
    return [node]


def nodes_with_offers():
    """Many nodes: whatever the next one to go offers has got the columns of the one before it."""
    made = odd_nodes()
    for number, node in enumerate(made):
        offered = {f"example.com/r{number}-{each}": "1" for each in range(KEYS // 200)}
        node.raw["status"]["allocatable"] |= offered
    return made


def node_with_images():
    node = odd_node()
    node.raw["status"]["images"] = [
        {"names": [f"example.com/i{each}"], "sizeBytes": 1} for each in range(KEYS)
    ]
    return [node]


def placed():
    return make_pod("odd").uid("u-odd").on("n1")


def pod_with_labels():
    pod = placed()
    pod.raw["metadata"]["labels"] = {f"l{each}": f"v{each}" for each in range(KEYS)}
    return [pod]


def pod_with_terms():
    pod = placed()
    terms = [
        {"topologyKey": f"t{each}", "labelSelector": {"matchLabels": {f"k{each}": "v"}}}
        for each in range(500)
    ]
    pod.raw["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: terms}}
    return [pod]


def pod_with_claims():
    pod = placed()
    pod.raw["spec"]["volumes"] = [
        {"name": f"v{each}", "persistentVolumeClaim": {"claimName": f"claim-{each}"}}
        for each in range(KEYS)
    ]
    return [pod]


def pod_with_ports():
    pod = placed()
    ports = [{"containerPort": 1, "hostPort": 1 + each} for each in range(KEYS)]
    pod.raw["spec"]["containers"] = [{"name": "c", "ports": ports}]
    return [pod]


def come_and_go(found, make):
    made = [each.obj() for each in make()]
    for each in made:
        (found.node if isinstance(each, Node) else found.pod)(each)
    for each in made:
        if isinstance(each, Node):
            found.drop_node(each.metadata.name)
        else:
            found.drop_pod(each)
    found.told.clear()
    found.out.clear()


def allocated():
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize(
    "make",
    [
        node_with_labels,
        nodes_with_offers,
        node_with_images,
        pod_with_labels,
        pod_with_terms,
        pod_with_claims,
        pod_with_ports,
    ],
)
def test_what_some_objects_have_thousands_of_leaves_no_tables_behind(make):
    tracemalloc.start()
    try:
        found = cluster(10)
        # Rows are used again and not given back.
        come_and_go(found, odd_nodes)
        before = allocated()
        come_and_go(found, make)
        # A dict of so many keys takes 100 KiB or more.
        assert allocated() - before < 50 * 1024
    finally:
        tracemalloc.stop()


def report(found, version):
    """Let ten nodes say what they have; of that, only one thing is ever new."""
    for number in range(10):
        node = make_node(f"n{number}").offers(cpu="9k", memory="9Ti", pods="100k")
        node.raw["metadata"]["labels"] = {f"label-{each}": f"value-{each}" for each in range(50)}
        node.raw["spec"] = {"unschedulable": bool(version % 2)}
        node.raw["status"]["images"] = [
            {"names": [f"example.com/{'i' * 100}{each}"], "sizeBytes": 1} for each in range(100)
        ]
        found.node(node.obj())
    found.told.clear()
    found.out.clear()


def test_what_nodes_say_again_is_held_once():
    """Kubelets report every few minutes, and mostly what they reported before."""
    tracemalloc.start()
    try:
        found = cluster(10)
        before = allocated()
        report(found, 0)
        once = allocated()
        report(found, 1)
        assert allocated() - once < (once - before) / 5
    finally:
        tracemalloc.stop()
