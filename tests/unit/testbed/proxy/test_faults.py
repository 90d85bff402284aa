import pytest

from testbed.proxy.choosing import NOTHING, Chooser
from testbed.proxy.faults import Fault, RequestClass, Rule, classify

POD = "/api/v1/namespaces/a/pods/p"


@pytest.mark.parametrize(
    ("method", "target", "kind"),
    [
        ("POST", f"{POD}/binding", RequestClass.BINDING),
        ("PATCH", f"{POD}/status", RequestClass.STATUS),
        ("DELETE", POD, RequestClass.EVICTION),
        ("GET", POD, RequestClass.READ),
        ("GET", "/api/v1/nodes/n1", RequestClass.READ),
        ("GET", "/api/v1/nodes?limit=500", RequestClass.LIST),
        ("GET", "/api/v1/namespaces", RequestClass.LIST),
        ("GET", "/api/v1/namespaces/a", RequestClass.READ),
        ("GET", "/apis/apps/v1/replicasets", RequestClass.LIST),
        ("GET", "/apis/apps/v1/namespaces/a/replicasets/r", RequestClass.READ),
        ("GET", "/api/v1/pods?watch=true&resourceVersion=1", RequestClass.WATCH),
        ("POST", "/apis/events.k8s.io/v1/namespaces/a/events", RequestClass.EVENT),
        ("PATCH", "/apis/events.k8s.io/v1/namespaces/a/events/e", RequestClass.EVENT),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/k/leases/s", RequestClass.LEASE),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/k/leases/s", RequestClass.LEASE),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/k/leases?watch=1", RequestClass.WATCH),
        ("PATCH", "/api/v1/persistentvolumes/v", RequestClass.WRITE),
    ],
)
def test_requests_are_classified_by_what_they_are_for(method, target, kind):
    assert classify(method, target) is kind


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"fault": Fault.ROTATED}, "no rule can bring it"),
        ({"fault": Fault.RESET, "probability": 0.0}, "probability 0.0"),
        ({"fault": Fault.RESET, "probability": 1.5}, "probability 1.5"),
        ({"fault": Fault.HALF_OPEN}, "does not happen to"),
        ({"fault": Fault.RESET, "classes": {RequestClass.CONNECTION}}, "does not happen to"),
    ],
)
def test_rules_that_could_do_nothing_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Rule(**fields)


def draws(seed, count=200, **fields):
    chooser = Chooser(seed)
    chooser.set_rules([Rule(fault=Fault.RESET, probability=0.2, **fields)])
    return [chooser.choose(RequestClass.BINDING)[0].fault for _ in range(count)]


def test_the_same_seed_draws_the_same_faults():
    assert draws(1) == draws(1)
    assert draws(1) != draws(2)


def test_probability_is_about_what_happens():
    struck = draws(1, count=1000).count(Fault.RESET)
    assert 150 < struck < 250


def test_requests_of_other_classes_do_not_change_the_draw():
    alone, mixed = Chooser(1), Chooser(1)
    rule = Rule(fault=Fault.RESET, probability=0.3)
    alone.set_rules([rule])
    mixed.set_rules([rule])
    for _ in range(50):
        mixed.choose(RequestClass.EVENT)
        ours = alone.choose(RequestClass.BINDING)[0]
        assert mixed.choose(RequestClass.BINDING)[0] == ours


def test_a_rule_is_spent_at_its_limit():
    assert draws(1, limit=3).count(Fault.RESET) == 3


def test_a_rule_concerns_its_classes_and_targets_only():
    chooser = Chooser(1)
    rule = Rule(fault=Fault.RESET, classes={RequestClass.WATCH}, within="/pods?")
    chooser.set_rules([rule])
    assert chooser.choose(RequestClass.WATCH, target="/api/v1/pods?watch=true")[0] is rule
    assert chooser.choose(RequestClass.WATCH, target="/api/v1/nodes?watch=true")[0] is NOTHING
    assert chooser.choose(RequestClass.LIST, target="/api/v1/pods?limit=1")[0] is NOTHING


def test_an_expired_token_is_refused_whatever_the_rules_say():
    chooser = Chooser(1)
    chooser.expire("old")
    kind = RequestClass.READ
    assert chooser.choose(kind, authorization="Bearer old")[0].fault is Fault.EXPIRED
    assert chooser.choose(kind, authorization="Bearer new")[0] is NOTHING
