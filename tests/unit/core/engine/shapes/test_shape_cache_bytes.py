"""What kept evaluations take is counted as it is, and finding room costs the same at any number."""

import gc
import sys
import tracemalloc

import pytest

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.framework.shapes import LONGEST_BYTES, shape_of
from k8s_scheduler.core.setup import Setup
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import Harness

SETUP = Setup(profiles=default_configuration(known_plugins()).profiles)
HOSTNAME = "kubernetes.io/hostname"
MEASURED = 20


def cluster(nodes):
    found = Harness(SETUP)
    for number in range(nodes):
        node = make_node(f"n{number}").offers(cpu="9k", memory="9Ti", pods="100k")
        node.raw["metadata"]["labels"] = {"zone": f"z{number % 3}", HOSTNAME: f"n{number}"}
        found.node(node.obj())
    return found


def plain(number):
    pod = make_pod("p")
    image = {"name": "c", "image": f"example.com/app:{number}"}
    pod.raw["spec"]["containers"] = [image | {"resources": {"requests": {"cpu": "1m"}}}]
    return pod


def sized(number):
    return plain(number).request(cpu=f"{number + 1}m")


def spread(number):
    pod = plain(number).label(app=f"a{number}")
    constraint = {"maxSkew": 5, "labelSelector": {"matchLabels": {"app": f"a{number}"}}}
    pod.raw["spec"]["topologySpreadConstraints"] = [
        constraint | {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
        constraint | {"topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway"},
    ]
    return pod


def tolerant(number):
    pod = plain(number)
    pod.raw["spec"]["tolerations"] = [{"key": f"k{number}-{each}"} for each in range(100)]
    return pod


def come_and_go(found, make, numbers):
    for number in numbers:
        for replica in range(3):
            pod = make(number)
            pod.raw["metadata"] |= {"name": f"p{number}-{replica}", "uid": f"{number}-{replica}"}
            made = pod.obj()
            found.pod(made)
            found.schedule()
            found.drop_pod(made)
        found.told.clear()
        found.out.clear()


@pytest.mark.parametrize(
    ("nodes", "make"),
    [
        *((10, make) for make in (plain, sized, spread, tolerant)),
        *((100, make) for make in (plain, spread)),
        *((5000, make) for make in (sized, spread)),
    ],
)
def test_bytes_are_counted_within_a_quarter_of_what_python_allocates(nodes, make):
    found = cluster(nodes)
    shapes = inside(found.core).shapes
    come_and_go(found, make, range(MEASURED))
    gc.collect()
    tracemalloc.start()
    try:
        counted, real = shapes.nbytes, tracemalloc.get_traced_memory()[0]
        come_and_go(found, make, range(1000, 1000 + MEASURED))
        gc.collect()
        real = tracemalloc.get_traced_memory()[0] - real
    finally:
        tracemalloc.stop()
    assert len(shapes) == 2 * MEASURED
    assert 0.75 < (shapes.nbytes - counted) / real < 1.25


def test_what_was_said_of_other_pods_counts_for_no_shape():
    found = cluster(10)
    shapes = inside(found.core).shapes
    come_and_go(found, spread, range(1))
    (before,) = shapes._shapes._order.values()
    for number in range(200):
        wanting = make_pod(f"wanting-{number}").request(**{f"example.com/r{number}": "1"})
        found.pod(wanting.obj())
        found.schedule()
    assert shapes.sizes()["verdicts"][0] > before
    come_and_go(found, spread, range(1, 2))
    *_, after = shapes._shapes._order.values()
    assert after < 1.1 * before


def test_what_is_dropped_is_freed_without_the_garbage_collector():
    found = cluster(10)
    shapes = inside(found.core).shapes
    come_and_go(found, spread, range(MEASURED))
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        come_and_go(found, spread, range(1000, 1000 + MEASURED))
        full = tracemalloc.get_traced_memory()[0]
        shapes.limit(1)
        left = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.enable()
    assert len(shapes) == 1
    # Counters of the state outlive the evaluations that asked for them.
    assert left < full / 3


def test_a_lower_limit_drops_the_least_recently_used_and_a_higher_one_lets_it_grow_again():
    found = cluster(10)
    shapes = inside(found.core).shapes
    come_and_go(found, sized, range(MEASURED))
    shapes.limit(shapes.nbytes // 2)
    left = len(shapes)
    assert 1 < left < MEASURED
    assert found.core.tally.dropped == MEASURED - left
    before = found.core.tally.made
    come_and_go(found, sized, [MEASURED - 1])
    assert found.core.tally.made == before
    shapes.limit(1 << 30)
    come_and_go(found, sized, range(MEASURED))
    assert len(shapes) == MEASURED


def calls(work):
    """Return how many functions of Python were called."""
    count = 0

    def called(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_a_new_shape_costs_no_more_where_many_are_kept():
    found = cluster(3)
    come_and_go(found, plain, range(5))
    few = calls(lambda: come_and_go(found, plain, range(100, 110)))
    come_and_go(found, plain, range(200, 800))
    many = calls(lambda: come_and_go(found, plain, range(1000, 1010)))
    assert len(inside(found.core).shapes) > 600
    assert many < 1.05 * few


def test_a_key_is_short_however_large_the_pod_is():
    large = tolerant(1)
    large.raw["metadata"]["labels"] = {f"k{each}": "v" * 63 for each in range(100)}
    other = tolerant(1)
    other.raw["metadata"]["labels"] = {f"k{each}": "v" * 63 for each in range(101)}
    one, two = shape_of(large.obj()), shape_of(other.obj())
    assert max(map(len, one)) <= LONGEST_BYTES
    # A pod's own content never looks like the digest of another's.
    assert one.labels[:1] == b"\xc1"
    assert (one.spec, one.partial) == (two.spec, two.partial)
    assert one.labels != two.labels


def test_a_shape_is_forgotten_when_no_pod_of_it_came_for_long():
    found = cluster(10)
    shapes = inside(found.core).shapes
    come_and_go(found, plain, range(20))
    empty = shapes.nbytes
    for _ in range(4):
        come_and_go(found, plain, range(3))
        found.now += 300
        for _ in range(2):
            found.tick()
    assert len(shapes) == 3
    assert shapes.nbytes < 0.5 * empty
    found.now += 900
    found.tick()
    assert len(shapes) == 3, "the period that was missed is not held against those in use"
    found.now += 900
    found.tick()
    found.now += 900
    found.tick()
    assert len(shapes) == 0
