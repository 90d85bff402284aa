"""A namespace in which attempt after attempt fails lets others pass, and still has its turns."""

from k8s_scheduler.core.queue.giving_way import AFTER, WAYS
from k8s_scheduler.core.queue.namespace_heaps import NamespaceHeaps
from k8s_scheduler.core.queue.places import MOST_FLUSHED
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import Harness


def crowd(h, count, namespace="crowd", cpu="64", priority=0):
    for number in range(count):
        name = f"{namespace}-{number}"
        h.pod(make_pod(name).namespace(namespace).request(cpu=cpu).priority(priority).obj())


def attempts_until_bound(h, name, most=2000):
    for number in range(most):
        if name in [bind.name for bind in h.tell_one()]:
            return number
    raise AssertionError(f"{name} is not bound after {most} attempts")


class OneByOne(Harness):
    """A core that is asked for one decision at a time."""

    def __init__(self):
        super().__init__()
        self.node(make_node("n").offers(cpu="32", memory="64Gi", pods="5000").obj())

    def tell_one(self):
        return [i for i in self.schedule(1) if type(i).__name__ == "Bind"]


def failed_crowd(count=300):
    h = OneByOne()
    crowd(h, count)
    while h.core.has_work:
        h.schedule(16)
    h.now += 301
    h.tick()
    return h


def test_a_pod_of_another_namespace_waits_for_a_few_of_the_failing_ones_at_most():
    h = failed_crowd()
    h.pod(make_pod("honest").namespace("others").request(cpu="1").obj())
    assert attempts_until_bound(h, "honest") <= AFTER


def test_one_of_the_same_namespace_waits_its_turn():
    h = failed_crowd()
    h.pod(make_pod("late").namespace("crowd").request(cpu="1").obj())
    assert attempts_until_bound(h, "late") == 300


def test_a_less_important_pod_is_never_let_pass():
    h = failed_crowd()
    h.pod(make_pod("lesser").namespace("others").request(cpu="1").priority(-1).obj())
    assert attempts_until_bound(h, "lesser") == 300


def test_the_failing_ones_are_tried_under_a_stream_of_others():
    h = failed_crowd(100)
    tried = inside(h.core).queue.get("uid-crowd-99").attempts
    for number in range(100 * (WAYS + 1) + AFTER):
        if inside(h.core).queue.get("uid-crowd-99").attempts > tried:
            break
        h.pod(make_pod(f"o{number}").namespace("others").request(cpu="1m").obj())
        h.schedule(1)
    assert inside(h.core).queue.get("uid-crowd-99").attempts == tried + 1


def test_where_nothing_fails_the_order_is_that_of_arrival():
    h = OneByOne()
    crowd(h, 50, cpu="1m")
    h.pod(make_pod("honest").namespace("others").request(cpu="1m").obj())
    assert attempts_until_bound(h, "honest") == 50


def test_successes_make_up_for_failures():
    heaps = NamespaceHeaps()
    giving = heaps._giving_way
    for _ in range(AFTER):
        giving.failed("a")
    assert giving.gives("a")
    giving.succeeded("a")
    assert not giving.gives("a")
    for _ in range(AFTER):
        giving.succeeded("a")
    assert not giving._failures


def test_after_each_failure_so_many_pass_and_no_more():
    heaps = NamespaceHeaps()
    for _ in range(AFTER):
        heaps._giving_way.failed("a")
    for number in range(WAYS + 5):
        heaps.push(f"b{number}", "b", namespace="b", order=(0.0, 9.0), sequence=number)
    heaps.push("a", "a", namespace="a", order=(0.0, 1.0), sequence=99)
    assert [heaps.pop() for _ in range(WAYS + 2)] == ["b"] * WAYS + ["a", "b"]


def test_of_several_that_give_way_the_first_comes_first():
    heaps = NamespaceHeaps()
    for namespace in "ab":
        for _ in range(AFTER):
            heaps._giving_way.failed(namespace)
    heaps.push("b", "b", namespace="b", order=(0.0, 2.0), sequence=1)
    heaps.push("a", "a", namespace="a", order=(0.0, 1.0), sequence=2)
    assert [heaps.pop(), heaps.pop(), heaps.pop()] == ["a", "b", None]


def test_one_tick_lets_a_bounded_number_come_back_and_the_next_ones_the_others():
    h = OneByOne()
    crowd(h, MOST_FLUSHED + 7)
    while h.core.has_work:
        h.schedule(100)
    h.now += 301
    h.tick()
    assert len(inside(h.core).queue.places.active) == MOST_FLUSHED
    h.tick(1)
    assert len(inside(h.core).queue.places.active) == MOST_FLUSHED + 7
