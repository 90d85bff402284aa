"""Harm by nodes: what a kubelet says of its own, and nodes that come and go."""

import itertools
from collections.abc import Iterator

from tests.tenants.asking import names, node_with
from tests.tenants.tenant import Deed, Harm, NodeGoes, NodeIs, Tried


def offered(*, each: int | None = None) -> Harm:
    """Return nodes that offer resources of which no other object has heard."""

    def harm(count: int) -> Iterator[Deed]:
        for number, first in enumerate(range(0, count, each or count)):
            raw = node_with({}, number)
            raw["status"]["allocatable"] |= names(range(first, first + (each or count)))
            yield NodeIs(raw)
        yield Tried()

    return harm


def tainted(effect: str, *, each: int | None = None) -> Harm:
    """Return nodes with many taints."""

    def harm(count: int) -> Iterator[Deed]:
        for number, first in enumerate(range(0, count, each or count)):
            raw = node_with({}, number)
            raw["spec"] = {
                "taints": [
                    {"key": f"example.com/t{i}", "effect": effect}
                    for i in range(first, first + (each or count))
                ]
            }
            yield NodeIs(raw)
        yield Tried()

    return harm


def labelled(*, each: int | None = None) -> Harm:
    """Return nodes with many labels."""

    def harm(count: int) -> Iterator[Deed]:
        for number, first in enumerate(range(0, count, each or count)):
            labels = {f"label-{i}": f"v{i}" for i in range(first, first + (each or count))}
            yield NodeIs(node_with(labels, number))
        yield Tried()

    return harm


def imaged(*, each: int | None = None) -> Harm:
    """Return nodes with many images."""

    def harm(count: int) -> Iterator[Deed]:
        for number, first in enumerate(range(0, count, each or count)):
            raw = node_with({}, number)
            raw["status"]["images"] = [
                {"names": [f"example.com/i{i}:v1"], "sizeBytes": 10_000_000}
                for i in range(first, first + (each or count))
            ]
            yield NodeIs(raw)
        yield Tried()

    return harm


def come_and_go() -> Harm:
    """Return nodes of which each has a name and a label of its own, one after the other."""

    def harm(count: int) -> Iterator[Deed]:
        for number in range(count):
            yield NodeIs(node_with({"batch": f"b{number}"}, number))
            yield NodeGoes(f"greedy-node-{number}")
        yield Tried()

    return harm


def relabelled() -> Harm:
    """Return one node whose label has another value again and again."""

    def harm(count: int) -> Iterator[Deed]:
        for number in range(count):
            yield NodeIs(node_with({"generation": f"g{number}"}, 0))
        yield Tried()

    return harm


def odd_quantity() -> Harm:
    """Return nodes of which nobody can say what they offer."""

    def harm(count: int) -> Iterator[Deed]:
        for number in range(count):
            raw = node_with({}, number)
            raw["status"]["allocatable"]["cpu"] = f"1e{2000 + number}"
            yield NodeIs(raw)
        yield Tried()

    return harm


def restless() -> Iterator[Deed]:
    """Yield one node's labels, other ones each time."""
    for number in itertools.count():
        yield NodeIs(node_with({"generation": f"r{number}", f"key-{number}": "v"}, 0))
