"""Every way known in which one tenant could harm the others, and each way turned around.

A row is what the tenant does (a function that yields deeds), how much of it, and under which
limits: those that a scheduler has by default, or none at all where the cost is documented to grow
as the object does. `count` is how much of it `make tenants` does, `brief` the tests of `make test`;
0 is none.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.tenants import asking, crowding, kubelets
from tests.tenants.asking import HARD, HERE, NOWHERE, SOFT
from tests.tenants.tenant import Deed, Harm
from tests.tenants.world import SCARCE_NODES

ANTI, AFFINE = "podAntiAffinity", "podAffinity"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    case: str
    turn: str
    harm: Harm
    count: int
    brief: int = 0
    raised: bool = False
    # What goes on while others are decided on, one deed before each of theirs.
    meanwhile: Callable[[], Iterator[Deed]] | None = None

    @property
    def name(self) -> str:
        """How the row is called."""
        return f"{self.case}, {self.turn}{', limits raised' if self.raised else ''}"


def _rows() -> Iterator[Row]:
    yield from _constraints()
    yield from _terms()
    yield from _resources()
    yield from _sizes()
    yield from _content()
    yield from _crowds()
    yield from _nodes()


def _constraints() -> Iterator[Row]:
    case = "spread constraints"
    for kind, action in (("soft", SOFT), ("hard", HARD)):
        yield Row(case, f"{kind}, one pending", asking.constraints(action), 1300, 1300)
        yield Row(case, f"{kind}, one pending", asking.constraints(action), 1300, 300, raised=True)
        most = asking.constraints(action, each=64)
        yield Row(case, f"{kind}, many at the limit", most, 64 * 20, 64 * 3)
        placed = asking.constraints(action, node=HERE)
        yield Row(case, f"{kind}, one placed", placed, 1300, 1300)
        known = asking.constraints(action, labelled=4)
        yield Row(case, f"{kind}, on keys of nodes", known, 1300, raised=True)
    placed = asking.constraints(HARD, each=1, node=HERE)
    yield Row(case, "hard, many placed", placed, 2000, 300)


def _terms() -> Iterator[Row]:
    case = "affinity terms"
    for kind in ("hard", "soft"):
        for words, side in (("apart", ANTI), ("together", AFFINE)):
            name = f"{kind} {words}"
            placed = asking.terms(kind, side, node=HERE)
            yield Row(case, f"{name}, one placed", placed, 8000, 1500)
            yield Row(case, f"{name}, one placed", placed, 8000, 1500, raised=True)
            many = asking.terms(kind, side, node=HERE, each=1)
            yield Row(case, f"{name}, many placed", many, 3000, 1200)
            yield Row(case, f"{name}, one pending", asking.terms(kind, side), 1500, raised=True)
            most = asking.terms(kind, side, each=256)
            yield Row(case, f"{name}, many at the limit", most, 256 * 12, 256)
            yield Row(case, f"{name}, many pending", asking.terms(kind, side, each=8), 1600, 160)
    keys = asking.terms("hard", ANTI, node=HERE, key="key-{}", each=100)
    yield Row(case, "hard apart, on a key each, many placed", keys, 3000, 600)
    keys = asking.terms("hard", ANTI, key="key-{}", each=100)
    yield Row(case, "hard apart, on a key each, many pending", keys, 3000, 600)
    gone = asking.terms("hard", ANTI, node=NOWHERE)
    yield Row(case, "hard apart, one placed on no node", gone, 8000, raised=True)


def _resources() -> Iterator[Row]:
    case = "resources"
    yield Row(case, "one pending", asking.resources(), 20_000, 4000)
    yield Row(case, "one pending", asking.resources(), 20_000, 2000, raised=True)
    yield Row(case, "many pending", asking.resources(each=10), 10_000, 500)
    yield Row(case, "one placed on no node", asking.resources(node=NOWHERE), 4100, 4100)
    yield Row(case, "one placed", asking.resources(node=HERE), 20_000, 4100)
    yield Row(case, "many placed", asking.resources(node=HERE, each=1), 4100, 500)
    yield Row(case, "many placed on no node", asking.resources(node=NOWHERE, each=1), 4100)
    yield Row(case, "one node offers", kubelets.offered(), 4100, 4100)
    yield Row(case, "one node offers", kubelets.offered(), 4100, 1000, raised=True)
    yield Row(case, "many nodes offer", kubelets.offered(each=10), 4000, 400)


def _sizes() -> Iterator[Row]:
    limits = {
        "tolerations": (1000, 10_000),
        "host ports": (2000, 20_000),
        "containers": (999, 10_000),
        "volumes": (1000, 10_000),
        "claims": (256, 3000),
        "labels": (990, 10_000),
        "hard node terms": (1000, 10_000),
        "soft node terms": (1000, 10_000),
        "node expressions": (2000, 20_000),
        "node names": (5000, 20_000),
    }
    for what, (within, most) in limits.items():
        yield Row(what, "many at the limit", asking.much(what, each=within), 6 * within, within)
        yield Row(what, "one pending", asking.much(what), most, raised=True)
        yield Row(what, "one placed", asking.much(what, node=HERE), most, within)
    yield Row("quantity", "pending", asking.odd_quantity(), 50, 5)
    yield Row("quantity", "placed", asking.odd_quantity(node=HERE), 50, 5)
    yield Row("quantity", "of nodes", kubelets.odd_quantity(), 50, 5)


def _content() -> Iterator[Row]:
    case = "come and go"
    for what, within, most in (
        ("resources", 256, 3000),
        ("tolerations", 1000, 7000),
        ("node names", 5000, 13_000),
        ("labels", 990, 7000),
        ("annotations", 1000, 1000),
    ):
        go = asking.come_and_go
        yield Row(case, f"{what}, pending, thrice", go(what, within, times=3), 40, 5)
        yield Row(case, f"{what}, pending", go(what, most), 40, raised=True)
        yield Row(case, f"{what}, placed", go(what, most, node=HERE), 40, 5)
    yield Row(case, "image tags", crowding.image_tags(), 2000, 60)


def _crowds() -> Iterator[Row]:
    for why in ("too large", "no such node", "no such friend", "away from all"):
        yield Row("parked", f"{why}, of a shape each", crowding.parked(why), 10_000, 200)
    replicas = crowding.parked("too large", shapes=False)
    yield Row("parked", "replicas", replicas, 10_000, 500)
    yield Row("failing", "of a shape each", crowding.failing(), 3000, 100)
    for kind in ("hard", "soft", "plain"):
        for words, shapes, count in (("4 alike", False, 4), ("of a shape each", True, 200)):
            harm = crowding.preempting(kind, guards=5000, shapes=shapes)
            yield Row("preempting", f"{kind}, {words}", harm, count)
            brief = crowding.preempting(kind, guards=100, shapes=shapes)
            yield Row("preempting", f"{kind}, {words}, few nodes", brief, 0, 4)
    for words, priority in (("important", 1000), ("unimportant", -10)):
        yield Row(
            "nominated", f"{words}, one", crowding.nominated(nodes=1, priority=priority), 1, 1
        )
        many = crowding.nominated(nodes=2000, priority=priority)
        yield Row("nominated", f"{words}, many", many, 2000)
        same = crowding.nominated(nodes=1, priority=priority)
        yield Row("nominated", f"{words}, many on one node", same, 2000)
    for kind in ("soft", "hard"):
        picky = crowding.nominated(nodes=2000, priority=1000, kind=kind)
        yield Row("nominated", f"important, with {kind} terms, many", picky, 2000)
    yield Row("ghosts", "a node each", crowding.ghosts(nodes=20_000), 20_000, 500)
    yield Row("ghosts", "one node", crowding.ghosts(nodes=1), 20_000, 500)
    yield Row("budgets", "many small", crowding.budgets(), 5000, 500)
    yield Row("budgets", "few large", crowding.budgets(terms=2000), 10, 2)
    yield Row("budgets", "many small, over placed pods", crowding.budgets(placed=100), 5000, 500)
    # Where others evict pods for theirs: these would have to leave, too.
    case = "crowded ground"
    yield Row(case, "replicas", crowding.crowd(), 2000, 500)
    yield Row(case, "of a shape each", crowding.crowd(shapes=True), 2000)
    yield Row(case, "a few on each node", crowding.crowd(nodes=SCARCE_NODES), 4000)
    for words, side in (("apart", ANTI), ("together", AFFINE)):
        yield Row(case, f"{words}, with everybody", crowding.crowd(held=side), 2000)
    for has in ("host ports", "volumes"):
        yield Row(case, f"with {has}", crowding.crowd(has=has), 2000)
        few = crowding.crowd(has=has, nodes=SCARCE_NODES)
        yield Row(case, f"with {has}, a few on each node", few, 4000)
    yield Row("services", "many", crowding.services(), 5000, 200)
    yield Row("namespaces", "many", crowding.namespaces(), 5000, 200)


def _nodes() -> Iterator[Row]:
    for kind, effect in (("soft", "PreferNoSchedule"), ("hard", "NoSchedule")):
        yield Row("taints", f"{kind}, one node", kubelets.tainted(effect), 10_000, 1000)
        yield Row("taints", f"{kind}, one node", kubelets.tainted(effect), 10_000, raised=True)
        yield Row("taints", f"{kind}, many nodes", kubelets.tainted(effect, each=100), 10_000, 1000)
    yield Row("node labels", "one node", kubelets.labelled(), 10_000, 1000)
    yield Row("node labels", "many nodes", kubelets.labelled(each=100), 10_000, 1000)
    yield Row("node images", "one node", kubelets.imaged(), 5000, 500)
    yield Row("node images", "many nodes", kubelets.imaged(each=50), 5000, 500)
    yield Row("nodes", "come and go", kubelets.come_and_go(), 50_000, 500)
    yield Row("nodes", "relabelled", kubelets.relabelled(), 20_000, 500)
    yield Row(
        "nodes",
        "relabelled all the time",
        kubelets.relabelled(),
        10,
        10,
        meanwhile=kubelets.restless,
    )


ROWS: tuple[Row, ...] = tuple(_rows())
