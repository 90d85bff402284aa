"""Parked pods that are dear to judge: others hardly wait for them, and they are not forgotten."""

from k8s_scheduler.api.config.limits import PodLimits
from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.pod_counts import pod_excess
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.messages.outgoing import Bind
from k8s_scheduler.core.queue.prices import DEAR, ORDINARY, price_of
from k8s_scheduler.core.setup import Setup
from tests.builders import make_node, make_pod
from tests.call_counts import calls_of
from tests.inside import inside
from tests.unit.core.harness import Harness, only

SETUP = Setup(profiles=default_configuration(known_plugins()).profiles)


def dear(number: int):
    """Return a pod with many terms about nodes, of which one that is large enough takes it."""
    pod = make_pod(f"dear{number}").namespace("tenant").request(cpu="40")
    terms = [
        {"matchExpressions": [{"key": f"k{number}-{i}", "operator": "DoesNotExist"}]}
        for i in range(400)
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod.raw["spec"]["affinity"] = {"nodeAffinity": required}
    return pod.obj()


def ordinary(number: int):
    return make_pod(f"ordinary{number}").namespace("others").request(cpu="1m").obj()


def cluster(*, dear_pods: int) -> Harness:
    found = Harness(SETUP)
    for i in range(20):
        found.node(make_node(f"n{i}").offers(cpu="32", pods="110").obj())
    for i in range(dear_pods):
        found.pod(dear(i))
    while found.core.has_work:
        found.schedule()
    # What they cost is found out once.
    found.node(make_node("n1").offers(cpu="31", pods="110").obj())
    while found.core.has_work:
        found.schedule()
    assert len(inside(found.core).queue) == dear_pods
    return found


def cost_of_others(found: Harness) -> int:
    for i in range(4):
        found.pod(ordinary(i))
    # It is news to all that are parked.
    found.node(make_node("n0").offers(cpu="33", pods="110").obj())
    out: list[object] = []
    calls = calls_of(lambda: out.extend(found.schedule(4)))
    assert len(only(Bind, out)) == 4
    return calls


def test_prices_tell_dear_pods_that_are_within_all_limits():
    assert price_of(ordinary(0)) < 2 * ORDINARY
    assert price_of(dear(0)) > DEAR
    assert pod_excess(dear(0), PodLimits()) == ()


def test_pods_of_others_do_not_wait_for_parked_ones_that_are_dear():
    without = cost_of_others(cluster(dear_pods=0))
    assert cost_of_others(cluster(dear_pods=10)) < 2 * without


def test_dear_pods_are_woken_as_soon_as_nobody_waits():
    found = cluster(dear_pods=3)
    found.node(make_node("large").offers(cpu="200", pods="110").obj())
    messages = 0
    while found.core.has_work:
        found.schedule()
        found.tick(10.0)
        messages += 1
        assert messages < 20
    assert len(inside(found.core).queue) == 0


def test_dear_pods_get_their_share_while_others_keep_coming():
    found = cluster(dear_pods=1)
    found.node(make_node("large").offers(cpu="200", pods="9000").obj())
    bound: list[str] = []
    for i in range(100):
        found.pod(ordinary(2 * i))
        found.pod(ordinary(2 * i + 1))
        found.now += 1.0
        bound += [bind.name for bind in only(Bind, found.schedule(1))]
        if "dear0" in bound:
            break
    assert "dear0" in bound
    assert len(bound) > 5


def test_a_checkpoint_holds_what_dear_groups_have_not_been_judged_on():
    found = cluster(dear_pods=2)
    found.pod(ordinary(0))
    found.node(make_node("large").offers(cpu="200", pods="110").obj())
    found.schedule(1)
    assert found.core.has_work
    found.core.checkpoint()
    assert inside(found.core).cache.changes
    while found.core.has_work:
        found.schedule()
        found.tick(10.0)
    assert len(inside(found.core).queue) == 0
