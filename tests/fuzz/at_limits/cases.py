"""Cases: what one tenant, or one broken kubelet, brings into a cluster, changes and takes away.

    one large    an object as large as the API server takes, pending, placed, on a node that does
                 not exist; a node, a node that was there before, or an object of another kind
    many small   as many bytes, in up to hundreds of objects, of which no two are alike
    within       pods at the limits of the configuration, several of them at once: these are tried

Everything follows from a seed and a number.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from k8s_scheduler.api.config.limits import PodLimits
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.pod_counts import pod_excess
from tests.fuzz.at_limits.api_rules import MAX_BYTES, Raw, encoded, size_of
from tests.fuzz.at_limits.neighbours import standing_node
from tests.fuzz.at_limits.node_parts import NODE_PARTS
from tests.fuzz.at_limits.other_parts import OTHER_KINDS
from tests.fuzz.at_limits.parts import Part, Words, labels
from tests.fuzz.at_limits.pod_parts import GATES, POD_PARTS

LIMITS = PodLimits()
LARGE, SMALL, WITHIN = "one large", "many small", "within"
_PROBE = 40
# Changed at most so many: a change of an object is as dear as its coming.
_CHANGED = 20

Sent = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Thing:
    """One object at two moments; `before` is what was there under its name, if anything."""

    kind: str
    name: str
    text: str
    changed: str = ""
    before: str = ""

    def come(self) -> Sent:
        """Return how a watch shows it at first."""
        return self.kind, "MODIFIED" if self.before else "ADDED", self.text

    def go(self) -> Sent:
        """Return how a watch shows its end."""
        last = self.changed or self.text
        return (self.kind, "MODIFIED", self.before) if self.before else (self.kind, "DELETED", last)


@dataclass(frozen=True, slots=True)
class Case:
    """What is brought in; `sort` is one of the three above."""

    number: int
    sort: str
    title: str
    things: tuple[Thing, ...]

    @property
    def nbytes(self) -> int:
        """How much memory its texts take: it is there as long as it is judged."""
        return sum(len(t.text) + len(t.changed) + len(t.before) for t in self.things)


def cases(seed: int, large: int, *, nodes: Callable[[int], int]) -> Iterator[Case]:
    """Yield cases until there were so many with one large object; `nodes` by number of the case."""
    number = 0
    while large > 0:
        found = make_case(seed, number, nodes=nodes(number))
        large -= found.sort == LARGE
        number += 1
        yield found


def make_case(seed: int, number: int, *, nodes: int, scale: float = 1.0) -> Case:
    """Return one case; the same one `scale` times as large, if asked."""
    rng = random.Random(f"{seed} {number}")
    sort = rng.choices((LARGE, SMALL, WITHIN), (7.5, 1, 1.5))[0]
    if sort == WITHIN:
        return _within(rng, number, scale)
    subject = rng.choices(("Pod", "Node", "standing node", "other"), (10, 3, 3, 4))[0]
    if subject == "other":
        subject = rng.choice(list(OTHER_KINDS))
    count = 1 if sort == LARGE else max(1, int(rng.choice((20, 60, 200)) * scale))
    budget = int(MAX_BYTES * rng.uniform(0.9, 0.98) * (scale if sort == LARGE else 1) / count)
    maker = _Maker(rng, number, nodes)
    made = [maker.thing(subject, i, budget) for i in range(count)]
    title = f"{sort} ({count}): {subject} with {', '.join(maker.parts) or 'nothing'}"
    return Case(number, sort, f"{title}{maker.place}", tuple(made))


class _Maker:
    """Makes the objects of one case: all of one subject, with the same parts."""

    def __init__(self, rng: random.Random, number: int, nodes: int) -> None:
        self._rng = rng
        self._number = number
        self._nodes = nodes
        self._namespace = f"tenant-{number % 7}"
        self._chosen: tuple[Part, ...] = ()
        self._characters = rng.choice((0, 0, 40, 63, 200))
        self._where = rng.choice(("pending", "pending", "placed", "placed", "on no node"))
        self._priority = rng.choice((None, None, None, -5, 10_000))
        self.place = ""

    @property
    def parts(self) -> list[str]:
        return [part.name for part in self._chosen]

    def thing(self, subject: str, i: int, budget: int) -> Thing:
        """Return the next object."""
        name = f"t{self._number}-{i}"
        before = ""
        if subject == "Pod":
            kind, raw, parts = "Pod", self._pod(name), POD_PARTS
            self.place = f", {self._where}"
        elif subject == "Node":
            kind, raw, parts = "Node", self._node(name), NODE_PARTS
        elif subject == "standing node":
            kind, raw, parts = "Node", standing_node((self._number + i) % self._nodes), NODE_PARTS
            name, before = raw["metadata"]["name"], encoded(raw)
        else:
            kind, parts = subject, OTHER_KINDS[subject].parts
            raw = self._other(subject, name)
        if not self._chosen:
            self._chosen = self._choice(subject, parts)
        changed = _copy(raw) if i < _CHANGED else None
        fill(raw, self._chosen, self._words(i, 0), budget)
        text = encoded(raw)
        return Thing(kind, name, text, self._changed(subject, raw, changed, i, budget), before)

    def _choice(self, subject: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        count = min(len(parts), self._rng.choice((1, 1, 1, 2, 3)))
        chosen = tuple(self._rng.sample(parts, count))
        if subject == "Pod" and self._where == "pending" and self._rng.random() < 0.05:
            return (*chosen, GATES)
        return chosen

    def _changed(self, subject: str, raw: Raw, bare: Raw | None, i: int, budget: int) -> str:
        """Return the object as it becomes; of pods only labels can be changed at will."""
        if bare is None:
            return ""
        if subject == "Pod":
            own = {f"changed-{self._number}": str(i), "app": "changed"}
            raw["metadata"]["labels"] = {**raw["metadata"]["labels"], **own}
            if "labels" in self.parts:
                raw["metadata"]["labels"] = dict(own)
                room = min(size_of(raw), budget)
                fill(raw, (Part("labels", labels),), self._words(i, 1), budget - room // 2)
            raw["spec"]["containers"][0]["resources"].setdefault("requests", {})["cpu"] = "2m"
            return encoded(raw)
        fill(bare, self._chosen, self._words(i, 1), budget)
        return encoded(bare)

    def _words(self, i: int, version: int) -> Words:
        return Words(f"{self._number}x{i}x{version}", self._characters)

    def _pod(self, name: str) -> Raw:
        raw = right_pod(name, self._namespace)
        if self._where == "placed":
            raw["spec"]["nodeName"] = f"node-{self._rng.randrange(self._nodes)}"
        elif self._where == "on no node":
            raw["spec"]["nodeName"] = f"gone-{self._rng.randrange(20)}"
        if self._priority is not None:
            raw["spec"]["priority"] = self._priority
        return raw

    def _node(self, name: str) -> Raw:
        raw = standing_node(0)
        raw["metadata"].update(name=name, uid=f"uid-{name}")
        raw["metadata"]["labels"]["kubernetes.io/hostname"] = name
        return raw

    def _other(self, kind: str, name: str) -> Raw:
        found = OTHER_KINDS[kind]
        metadata = {"name": name, "uid": f"uid-{kind}-{name}"}
        if found.namespaced:
            metadata["namespace"] = self._namespace
        return {"metadata": metadata, **found.make(name)}


def right_pod(name: str, namespace: str) -> Raw:
    """Return a pod that nothing is wrong with yet."""
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": {"app": "tenant"},
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [
                {
                    "name": "main",
                    "image": "tenant:v1",
                    "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}},
                }
            ],
        },
        "status": {"phase": "Pending"},
    }


def fill(raw: Raw, parts: tuple[Part, ...], words: Words, budget: int) -> None:
    """Give an object so much of each part that it is as large as it may be."""
    for i, part in enumerate(parts):
        room = (budget - size_of(raw)) // (len(parts) - i)
        count = max(1, min(part.most, int(room / _each(raw, part, words))))
        while True:
            filled = _copy(raw)
            part.add(filled, words.of(part.name), count)
            if count == 1 or size_of(filled) < MAX_BYTES:
                break
            count = int(count * 0.9)
        raw.update(filled)


def _each(raw: Raw, part: Part, words: Words) -> float:
    """Return how many bytes an item takes: what a few more add, whatever was there before."""
    sizes = []
    for count in (_PROBE, 2 * _PROBE):
        probe = _copy(raw)
        part.add(probe, words.of(part.name), count)
        sizes.append(size_of(probe))
    # Numbers of items have up to five digits, those of the probe fewer.
    return (sizes[1] - sizes[0]) / _PROBE + 4


def _copy(raw: Raw) -> Raw:
    return msgspec.json.decode(encoded(raw))


def _within(rng: random.Random, number: int, scale: float) -> Case:
    """Return pods that are at several limits at once, and tried."""
    count = rng.choice((1, 1, 3, 10))
    # A field of limits is used up by one part.
    by_limit: dict[str, Part] = {}
    limited = [part for part in POD_PARTS if part.limit]
    for part in rng.sample(limited, rng.choice((1, 2, 4, 8))):
        by_limit.setdefault(part.limit, part)
    things = []
    for i in range(count):
        name = f"w{number}-{i}"
        raw = right_pod(name, f"tenant-{number % 7}")
        words = Words(f"{number}x{i}")
        share = scale
        while True:
            made = _copy(raw)
            for part in by_limit.values():
                allowed = getattr(LIMITS, part.limit) - 5
                part.add(made, words.of(part.name), max(1, int(min(allowed, part.most) * share)))
            if not pod_excess(msgspec.convert(made, Pod), LIMITS):
                break
            share *= 0.8
        things.append(Thing("Pod", name, encoded(made)))
    names = ", ".join(part.name for part in by_limit.values())
    return Case(number, WITHIN, f"{WITHIN} ({count}): Pod with {names}", tuple(things))
