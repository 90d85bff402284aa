"""Disruption budgets: whose leaving they forbid."""

import random
from typing import Any

import msgspec
import pytest

from k8s_scheduler.api.ports import host_ports
from k8s_scheduler.api.resources import pod_requests
from k8s_scheduler.api.workloads import PodDisruptionBudget
from k8s_scheduler.core.engine.preemption import disruption_budgets as victims
from k8s_scheduler.core.engine.preemption.disruption_budgets import Budgets
from k8s_scheduler.core.state.delta import PlacedPod
from tests.builders import make_pod

X = {"matchLabels": {"app": "x"}}


def budget(allowed, selector=None, *, namespace="default", disrupted=()):
    return msgspec.convert(
        {
            "metadata": {"name": "b", "namespace": namespace},
            "spec": {"selector": X if selector is None else selector},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
        PodDisruptionBudget,
    )


def placed(name, **labels):
    pod = make_pod(name).label(**labels).obj()
    return PlacedPod(pod, pod_requests(pod), host_ports(pod))


def listing(budgets):
    """Return what lists these budgets by namespace, always the same tuples."""
    by_namespace = {}
    for found in budgets:
        by_namespace[found.metadata.namespace] = (
            *by_namespace.get(found.metadata.namespace, ()),
            found,
        )
    return lambda namespace: by_namespace.get(namespace, ())


def forbidden(budgets, *pods):
    violating, harmless = Budgets().divide(pods, listing(budgets))
    assert sorted(p.uid for p in (*violating, *harmless)) == sorted(p.uid for p in pods)
    return [p.pod.metadata.name for p in violating]


def test_a_budget_is_used_up_in_the_order_of_the_pods():
    pods = [placed(name, app="x") for name in "abc"]
    assert forbidden([budget(1)], *pods) == ["b", "c"]
    assert forbidden([budget(0)], *pods) == ["a", "b", "c"]
    assert forbidden([budget(3)], *pods) == []
    assert forbidden([budget(1)], *reversed(pods)) == ["b", "a"]


def test_each_division_starts_with_full_budgets():
    budgets, listed = Budgets(), listing([budget(1)])
    for _ in range(2):
        violating, _ = budgets.divide([placed("a", app="x")], listed)
        assert violating == []


@pytest.mark.parametrize(
    "other",
    [
        budget(0, {"matchLabels": {"app": "y"}}),
        budget(0, namespace="elsewhere"),
        budget(0, {}),
        budget(0, disrupted=["a"]),
        msgspec.convert({"metadata": {"name": "b", "namespace": "default"}}, PodDisruptionBudget),
        budget(0, {"matchExpressions": [{"key": "app", "operator": "Sometimes"}]}),
    ],
    ids=["labels", "namespace", "empty selector", "disrupted", "no selector", "unreadable"],
)
def test_budgets_that_do_not_cover_a_pod(other):
    assert forbidden([other], placed("a", app="x")) == []


def test_a_pod_without_labels_is_never_covered():
    everything = budget(0, {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]})
    assert forbidden([everything], placed("a")) == []
    assert forbidden([everything], placed("a", tier="t")) == ["a"]


def test_a_disrupted_pod_takes_nothing_from_its_budget():
    pods = [placed(name, app="x") for name in "abc"]
    assert forbidden([budget(1, disrupted=["a"])], *pods) == ["c"]


def test_several_budgets_count_up_to_the_first_that_is_exceeded():
    pods = [placed("a", app="x"), placed("b", app="x", tier="t"), placed("c", tier="t")]
    of_tier = budget(1, {"matchLabels": {"tier": "t"}})
    # "b" exceeds the first, so it takes nothing from the second, which lets "c" go.
    assert forbidden([budget(1), of_tier], *pods) == ["b"]
    # The other way round it takes from the first before it exceeds the second.
    assert forbidden([of_tier, budget(1)], *pods) == ["b", "c"]
    assert forbidden([budget(2), of_tier], *pods) == ["c"]


def test_other_budgets_of_a_namespace_are_read_when_they_have_changed():
    budgets = Budgets()
    pods = [placed("a", app="x")]
    assert budgets.divide(pods, listing([budget(1)])) == ([], pods)
    assert budgets.divide(pods, listing([budget(0)])) == (pods, [])


def test_budgets_are_not_held_once_nobody_asks():
    budgets, listed = Budgets(), listing([budget(1)])
    budgets.divide([placed("a", app="x")], listed)
    known = budgets._known["default"]
    for _ in range(10):
        budgets.tidy()
    budgets.divide([placed("a", app="x")], listed)
    assert budgets._known["default"] is known
    for _ in range(20):
        budgets.tidy()
    assert not budgets._known


def test_budgets_of_other_namespaces_and_labels_are_not_looked_at(monkeypatch):
    looked = []
    monkeypatch.setattr(victims, "matches", lambda *args: looked.append(args) or True)
    asked = []
    many = [
        budget(0, {"matchLabels": {"app": f"y{i}"}}, namespace=f"ns{i % 2}") for i in range(200)
    ]
    listed = listing([*many, budget(0, {"matchLabels": {"app": "y"}}), budget(0)])

    def listing_asked(namespace):
        asked.append(namespace)
        return listed(namespace)

    violating, _ = Budgets().divide([placed(n, app="x") for n in "abc"], listing_asked)
    assert [p.pod.metadata.name for p in violating] == ["a", "b", "c"]
    assert (asked, len(looked)) == (["default"], 3)


def test_budgets_found_by_different_labels_count_in_the_order_of_their_names():
    """The first one that forbids it ends the counting: the later ones keep what they have."""
    both = {"app": "x", "tier": "t"}
    first = budget(0, {"matchLabels": {"tier": "t"}})
    second = budget(1, X)
    pods = [placed("a", **both), placed("b", app="x"), placed("c", app="x")]
    assert forbidden([first, second], *pods) == ["a", "c"]
    assert forbidden([second, first], *pods) == ["a", "b", "c"]


@pytest.mark.parametrize("seed", range(30))
def test_budgets_that_are_asked_at_once_say_what_each_says(seed, monkeypatch):
    rng = random.Random(seed)
    some = [
        budget(
            rng.randint(0, 4),
            {"matchExpressions": [random_requirement(rng) for _ in range(rng.randint(0, 2))]},
            disrupted=rng.sample(["p0", "p1"], rng.randint(0, 1)),
        )
        for _ in range(rng.randint(1, 12))
    ]
    pods = [
        placed(f"p{n}", **{f"k{rng.randint(0, 3)}": rng.choice("vw") for _ in range(n % 3)})
        for n in range(8)
    ]
    one_by_one = forbidden(some, *pods)
    monkeypatch.setattr(victims, "_FEW", 0)
    assert forbidden(some, *pods) == one_by_one


def random_requirement(rng: random.Random) -> dict[str, Any]:
    operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist", "DoesNotExist"])
    found: dict[str, Any] = {"key": f"k{rng.randint(0, 3)}", "operator": operator}
    if operator in ("In", "NotIn"):
        found["values"] = rng.sample(["v", "w"], 2 if operator == "In" else 1)
    return found
