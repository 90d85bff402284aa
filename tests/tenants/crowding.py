"""Harm by number: pods that wait, fail, preempt, were promised room, or are nowhere."""

from collections.abc import Iterator

from k8s_scheduler.api.kinds import Kind
from tests.as_made import Raw
from tests.bench.workloads import HOST, PREFERRED, REQUIRED
from tests.tenants.asking import HERE, MUCH, pod
from tests.tenants.tenant import (
    NAMESPACE,
    BindingsFail,
    Deed,
    Harm,
    Later,
    ObjectIs,
    PodGoes,
    PodIs,
    Tried,
)

_MUCH = 31_000
_GUARDED = {"matchLabels": {"role": "guard"}}


def parked(why: str, *, shapes: bool = True) -> Harm:
    """Return pods that fit nowhere, each of a shape of its own, or all of one."""

    def harm(count: int) -> Iterator[Deed]:
        for number in range(count):
            yield PodIs(unfit(f"greedy-{number}", why, number if shapes else 0))
        yield Tried()

    return harm


def unfit(name: str, why: str, number: int) -> Raw:
    """Return a pod that fits nowhere."""
    if why == "too large":
        return pod(name, cpu=f"{33_000 + number}m")
    if why == "no such node":
        return pod(name, nodeSelector={"disk": f"d{number}"})
    if why == "away from all":
        return pod(name, affinity={"podAntiAffinity": {REQUIRED: [away_from_all(number)]}})
    # Together with a pod that there is not.
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"friend": f"f{number}"}}}
    return pod(name, affinity={"podAffinity": {REQUIRED: [term]}})


def away_from_all(number: int) -> Raw:
    """Return a term, another one for each number, that picks every pod of every namespace."""
    nobody = {"key": f"k{number}", "operator": "DoesNotExist"}
    selector = {"matchExpressions": [nobody]}
    return {"topologyKey": HOST, "labelSelector": selector, "namespaceSelector": {}}


def failing() -> Harm:
    """Return pods, each of a shape of its own, whose bindings are refused for ever."""

    def harm(count: int) -> Iterator[Deed]:
        yield BindingsFail()
        for number in range(count):
            yield PodIs(pod(f"greedy-{number}", cpu=f"{1 + number}m"))
        yield Tried()
        yield Later(3)

    return harm


def preempting(kind: str, *, guards: int, shapes: bool) -> Harm:
    """Return important pods that search all nodes for room, where more important ones are."""

    def harm(count: int) -> Iterator[Deed]:
        for number in range(guards):
            guard = pod(f"guard-{number}", cpu="2", node=f"node-{number}", priority=2000)
            guard["metadata"]["labels"]["role"] = "guard"
            yield PodIs(guard)
        for number in range(count):
            yield PodIs(_searching(f"greedy-{number}", kind, number if shapes else 0))
        yield Tried()

    return harm


def _searching(name: str, kind: str, number: int) -> Raw:
    term = {"topologyKey": HOST, "labelSelector": _GUARDED}
    if kind == "hard":
        affinity = {"podAntiAffinity": {REQUIRED: [term]}}
        return pod(name, cpu=f"{100 + number}m", priority=1000, affinity=affinity)
    raw = pod(name, cpu=f"{_MUCH + number}m", priority=1000)
    if kind == "soft":
        wish = {"weight": 1, "podAffinityTerm": term}
        raw["spec"]["affinity"] = {"podAntiAffinity": {PREFERRED: [wish]}}
    return raw


def nominated(*, nodes: int, priority: int, kind: str = "") -> Harm:
    """Return pods that were promised room, and do not come to take it."""

    def harm(count: int) -> Iterator[Deed]:
        for number in range(count):
            raw = pod(f"greedy-{number}", priority=priority)
            raw["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
            raw["status"]["nominatedNodeName"] = f"node-{number % nodes}"
            term = {"topologyKey": HOST, "labelSelector": _GUARDED}
            wish = {"weight": 1, "podAffinityTerm": term}
            if kind:
                held = {PREFERRED: [wish]} if kind == "soft" else {REQUIRED: [term]}
                raw["spec"]["affinity"] = {"podAntiAffinity": held}
            yield PodIs(raw)
        yield Tried()

    return harm


def ghosts(*, nodes: int) -> Harm:
    """Return pods on so many nodes that do not exist."""

    def harm(count: int) -> Iterator[Deed]:
        for number in range(count):
            yield PodIs(pod(f"greedy-{number}", node=f"ghost-{number % nodes}"))
        yield Tried()

    return harm


def crowd(*, nodes: int = 1, shapes: bool = False, held: str = "", has: str = "") -> Harm:
    """Return pods that their author has put on nodes, more than there is room for.

    Each asks for as much as the others, or for an amount of its own; and may hold a term that picks
    pods of all namespaces, or have host ports or disks.
    """

    def harm(count: int) -> Iterator[Deed]:
        for number in range(count):
            raw = pod(
                f"greedy-{number}", cpu=f"{1 + number * shapes}m", node=f"node-{number % nodes}"
            )
            if held:
                raw["spec"]["affinity"] = {held: {REQUIRED: [away_from_all(number % 50)]}}
            if has:
                MUCH[has](raw, range(number, number + 1))
            yield PodIs(raw)
        yield Tried()

    return harm


def budgets(*, terms: int = 1, placed: int = 0) -> Harm:
    """Return disruption budgets for all pods of the tenant's, and so many where others evict some.

    Each of these has labels of its own.
    """

    def harm(count: int) -> Iterator[Deed]:
        for number in range(count):
            keys = [f"k{number}-{i}" for i in range(terms)]
            chosen = [{"key": key, "operator": "DoesNotExist"} for key in keys]
            raw = {
                "metadata": {"name": f"greedy-{number}", "namespace": NAMESPACE},
                "spec": {"minAvailable": 1, "selector": {"matchExpressions": chosen}},
                "status": {"disruptionsAllowed": 0},
            }
            yield ObjectIs(Kind.POD_DISRUPTION_BUDGET, raw)
        for number in range(placed):
            made = pod(f"greedy-{number}", node="node-3")
            made["metadata"]["labels"][f"own-{number}"] = "v"
            yield PodIs(made)
        yield Tried()

    return harm


def services() -> Harm:
    """Return Services that pick every pod of the tenant's, and pods that they pick."""

    def harm(count: int) -> Iterator[Deed]:
        for number in range(count):
            raw = {
                "metadata": {"name": f"greedy-{number}", "namespace": NAMESPACE},
                "spec": {"selector": {"app": "greedy"}},
            }
            yield ObjectIs(Kind.SERVICE, raw)
        for number in range(8):
            yield PodIs(pod(f"greedy-{number}"))
        yield Tried()

    return harm


def namespaces() -> Harm:
    """Return namespaces with labels of their own, and a placed pod that tells them apart."""

    def harm(count: int) -> Iterator[Deed]:
        term = {
            "topologyKey": HOST,
            "labelSelector": {},
            "namespaceSelector": {"matchLabels": {"team": "greedy"}},
        }
        yield PodIs(pod("greedy-pod", node=HERE, affinity={"podAntiAffinity": {REQUIRED: [term]}}))
        for number in range(count):
            labels = {"team": "greedy" if number % 2 else f"t{number}"}
            yield ObjectIs(Kind.NAMESPACE, {"metadata": {"name": f"g{number}", "labels": labels}})
        yield Tried()

    return harm


def image_tags() -> Harm:
    """Return pods of which only two at a time have the same image."""

    def harm(count: int) -> Iterator[Deed]:
        for number in range(count):
            for again in range(3):
                raw = pod(f"greedy-{number}-{again}")
                raw["spec"]["containers"][0]["image"] = f"example.com/app:{number}"
                yield PodIs(raw)
                yield Tried()
                yield PodGoes(raw["metadata"]["uid"])

    return harm
