"""Pods that come, are tried once or twice and are deleted leave next to nothing behind.

Bytes are those that Python allocates. What is left over is bounded whatever pods contain: what is
kept of a pod that was seen once is a few digests.
"""

import gc
import tracemalloc

import pytest

from k8s_scheduler.core.framework.reasons import Reason, VerdictTable
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.shapes.test_shape_cache_bytes import cluster

NODES = 10
MIB = 1024 * 1024


def bare(number):
    return make_pod(f"p{number}").uid(f"u{number}").request(cpu="1m")


def tolerating(number):
    pod = bare(number)
    value = "v" * 60
    pod.raw["spec"]["tolerations"] = [
        {"key": f"example.com/{number}-{each}", "value": value} for each in range(1000)
    ]
    return pod


def demanding(number):
    pod = bare(number)
    values = [f"{number}-{each}-{'v' * 50}" for each in range(1000)]
    match = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": values}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [match]}}
    pod.raw["spec"]["affinity"] = {"nodeAffinity": required}
    return pod


def labelled(number):
    pod = bare(number)
    pod.raw["metadata"]["labels"] = {f"l{number}-{each}": "v" * 60 for each in range(1000)}
    return pod


def with_images(number):
    """Many small ones: a pod of many containers, with an image of its own each."""
    pod = bare(number)
    pod.raw["spec"]["containers"] = [
        {"name": f"c{each}", "image": f"example.com/{'i' * 60}:{number}-{each}"}
        for each in range(500)
    ]
    return pod


def come_and_go(found, make, numbers, *, times=1):
    for number in numbers:
        for _ in range(times):
            pod = make(number).obj()
            found.pod(pod)
            found.schedule()
            found.drop_pod(pod)
        found.told.clear()
        found.out.clear()


def left_over(work):
    """Return what work leaves allocated."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", [tolerating, demanding, labelled, with_images])
def test_a_large_pod_that_was_tried_once_leaves_next_to_nothing(make):
    found = cluster(NODES)
    come_and_go(found, make, range(1000, 1003))
    left = left_over(lambda: come_and_go(found, make, range(10)))
    # Its spec takes more than 60 KiB.
    assert left < 10 * 12 * 1024


@pytest.mark.parametrize("make", [tolerating, demanding])
def test_what_is_kept_of_large_pods_that_come_again_is_bounded(make):
    found = cluster(NODES)
    shapes = inside(found.core).shapes
    shapes.limit(MIB)
    come_and_go(found, make, range(1000, 1003), times=2)
    left = left_over(lambda: come_and_go(found, make, range(8), times=2))
    assert shapes.nbytes <= MIB
    assert left < 1.5 * MIB
    assert found.core.tally.dropped > 0


def test_many_tags_of_an_image_are_bounded_at_any_number_of_nodes():
    found = cluster(3)
    inside(found.core).shapes.limit(MIB // 4)

    def tagged(number):
        pod = bare(number)
        pod.raw["spec"]["containers"] = [{"name": "c", "image": f"example.com/app:{number}"}]
        return pod

    come_and_go(found, tagged, range(1000, 1020), times=2)
    left = left_over(lambda: come_and_go(found, tagged, range(60), times=2))
    assert inside(found.core).shapes.nbytes <= MIB // 4
    assert left < MIB // 2


def test_nodes_with_odd_content_leave_nothing_in_what_is_kept():
    found = cluster(NODES)
    come_and_go(found, bare, range(5), times=2)
    before = inside(found.core).shapes.nbytes
    for number in range(20):
        odd = make_node("odd").offers(cpu="8", memory="1Gi", pods="9").label(odd=f"{number}" * 30)
        odd.raw["spec"]["taints"] = [
            {"key": f"t{number}-{each}", "effect": "NoSchedule"} for each in range(100)
        ]
        found.node(odd.obj())
        come_and_go(found, bare, [number])
        found.drop_node("odd")
        come_and_go(found, bare, [number])
    assert inside(found.core).shapes.nbytes < before + 64 * 1024


def test_verdicts_are_forgotten_by_the_bytes_of_their_reasons():
    verdicts = VerdictTable()
    for number in range(100):
        reasons = tuple(Reason(f"A/{number}", f"{each} {'x' * 1000}") for each in range(100))
        verdicts.code_of("A", reasons, resolvable=False)
    assert verdicts.nbytes > verdicts.LIMIT_BYTES
    verdicts.forget()
    assert (verdicts.nbytes, verdicts.dropped, verdicts.epoch) == (0, 100, 1)
    verdicts.code_of("A", (), resolvable=False)
    verdicts.forget()
    assert verdicts.epoch == 1
