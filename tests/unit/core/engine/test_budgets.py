"""Disruption budgets: whose leaving they forbid."""

import msgspec
import pytest

from k8s_scheduler.api.ports import host_ports
from k8s_scheduler.api.resources import pod_requests
from k8s_scheduler.api.workloads import PodDisruptionBudget
from k8s_scheduler.core.engine.victims import Budgets
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


def forbidden(budgets, *pods):
    violating, harmless = Budgets(budgets).divide(pods)
    assert sorted(p.uid for p in (*violating, *harmless)) == sorted(p.uid for p in pods)
    return [p.pod.metadata.name for p in violating]


def test_a_budget_is_used_up_in_the_order_of_the_pods():
    pods = [placed(name, app="x") for name in "abc"]
    assert forbidden([budget(1)], *pods) == ["b", "c"]
    assert forbidden([budget(0)], *pods) == ["a", "b", "c"]
    assert forbidden([budget(3)], *pods) == []
    assert forbidden([budget(1)], *reversed(pods)) == ["b", "a"]


def test_each_division_starts_with_full_budgets():
    budgets = Budgets([budget(1)])
    for _ in range(2):
        violating, _ = budgets.divide([placed("a", app="x")])
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
