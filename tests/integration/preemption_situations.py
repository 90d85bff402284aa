"""Pods that fit only once others have left, by situation.

Nobody confirms the end of a pod here, so victims stay where they are, on their way out, and what
is said about a pod that waits for them can be read at leisure.
"""

from collections.abc import Mapping

from testbed.client import Object
from testbed.sandbox import Sandbox
from testbed.workload import HOSTNAME_LABEL, make_node
from tests.integration.situations import priority_class, resident, waiting
from tests.integration.worlds import Said, Thing, World

SEVERAL = ("several-low-1", "several-low-2", "several-low-3")
BUDGETS = "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"


def budget(name: str, labels: Mapping[str, str], *, allowed: int) -> Thing:
    """Return a disruption budget, counted as its controller would."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": dict(labels)}},
    }
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
        "observedGeneration": 1,
    }
    return Thing(BUDGETS, body, status=status)


def on(node: str, cpu: str, priority: str) -> Object:
    """Return a pod that fits on this node alone."""
    return waiting(
        requests={"cpu": cpu}, priorityClassName=priority, nodeSelector={HOSTNAME_LABEL: node}
    )


def held_up(pod: Object) -> Object:
    """Return the pod with a claim that is not there."""
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "ghost"}}
    pod["spec"]["volumes"] = [claim]
    return pod


def filler(
    name: str, node: str, cpu: str, priority: str = "low", **more: Mapping[str, str]
) -> Object:
    return resident(name, node, requests={"cpu": cpu}, priorityClassName=priority, **more)


def of_preemption() -> World:
    """Return the world of evictions: a node per situation."""
    nodes = ("one", "several", "guarded", "equals", "partly", "pinned", "awaited", "promised")
    return World(
        nodes=[make_node(name, cpu="4") for name in nodes],
        residents=[
            filler("one-low", "one", "3"),
            filler("several-medium", "several", "1", priority="medium"),
            *(filler(name, "several", "1") for name in SEVERAL),
            filler("guarded-low", "guarded", "3", labels={"app": "guarded"}),
            filler("equals-high", "equals", "3", priority="high"),
            filler("partly-low", "partly", "1"),
            filler("partly-high", "partly", "3", priority="high"),
            filler("pinned-low", "pinned", "3"),
            filler("awaited-low", "awaited", "3"),
        ],
        things=[
            priority_class("low", 10),
            priority_class("medium", 100),
            priority_class("high", 1000),
            priority_class("polite", 1000, preemptionPolicy="Never"),
            budget("guarded", {"app": "guarded"}, allowed=0),
        ],
        waiting={
            "evicts-one": on("one", "2", "high"),
            "evicts-several": on("several", "3", "high"),
            "evicts-against-a-budget": on("guarded", "2", "high"),
            "evicts-nobody-as-important": on("equals", "2", "high"),
            "evicts-nobody-as-it-would-not-do": on("partly", "2", "high"),
            "evicts-nobody-by-policy": on("pinned", "2", "polite"),
            "waits-for-a-victim": on("awaited", "2", "high"),
            "keeps-what-it-was-promised": held_up(on("promised", "3", "high")),
            "finds-the-room-promised-to-another": on("promised", "2", "medium"),
        },
        arrange=_make_promises,
        settled=_evictions_are_done,
    )


def of_broken_promises() -> World:
    """Return a world of its own for a pod that loses its nomination: others are woken by that."""
    return World(
        nodes=[make_node("equals", cpu="4")],
        residents=[filler("equals-high", "equals", "3", priority="high")],
        things=[priority_class("high", 1000)],
        waiting={"loses-what-it-was-promised": on("equals", "2", "high")},
        arrange=lambda sandbox: _promise(sandbox, "loses-what-it-was-promised", "equals"),
        settled=_promise_is_broken,
    )


def _promise(sandbox: Sandbox, name: str, node: str) -> None:
    """Nominate a pod."""
    sandbox.client.patch(
        f"{sandbox.path}/pods/{name}/status", {"status": {"nominatedNodeName": node}}
    )


def _make_promises(sandbox: Sandbox) -> None:
    """Nominate pods, one of them to a node that a victim of preemption is about to leave."""
    victim = f"{sandbox.path}/pods/awaited-low"
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "as if it had been done before",
    }
    sandbox.client.patch(f"{victim}/status", {"status": {"conditions": [condition]}})
    sandbox.client.delete(victim, grace_period_seconds=30)
    _promise(sandbox, "waits-for-a-victim", "awaited")
    _promise(sandbox, "keeps-what-it-was-promised", "promised")


def _promise_is_broken(heard: Mapping[str, Said]) -> None:
    assert heard["loses-what-it-was-promised"].nominated == ""


def _evictions_are_done(heard: Mapping[str, Said]) -> None:
    victims = {name for name, said in heard.items() if said.leaving}
    assert victims == {"one-low", "guarded-low", "awaited-low", *SEVERAL}
    for name in victims - {"awaited-low"}:
        assert heard[name].events
