"""What pods of other namespaces cost: their decisions, and the messages about them.

Each deed is done many times, in a world with harm and in one without, by turns, and the medians are
compared: whatever else this machine does makes both slower, and a loop that is timed before and
after does not see what happens in between. Before each of them the processor's caches are filled
with something else, as other work of the core does, with harm and without: what is compared is the
work for the deed.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from tests.as_made import Raw, as_made
from tests.bench.workloads import HOST, ZONE, plain, related, spread
from tests.tenants.world import World, scarce

TIMES = 25
# What makes more of a stir than a decision.
SELDOM = 8
_TRIES = 2000
_SOMETHING_ELSE = np.ones(1_000_000)


class Others:
    """Does what other namespaces do."""

    def __init__(self, world: World, *, times: int = TIMES) -> None:
        self._world = world
        self._times = times
        self._number = 0
        self._come: list[str] = []
        # What the tenant does meanwhile.
        self.between: Callable[[], None] = lambda: None

    def deeds(self) -> dict[str, Iterator[float]]:
        """Return each deed: it is done whenever the next of its costs is asked for."""
        decisions: dict[str, Callable[[str, int], Raw]] = {
            "replica": lambda _name, _number: plain("replica", cpu="1m", memory="1Mi"),
            "new shape": lambda _name, number: plain("job", cpu=f"{number}m", memory=f"{number}Ki"),
            "spread": lambda _name, _number: spread("even", key=ZONE, action="DoNotSchedule"),
            "apart": lambda _name, _number: related("apart", side="podAntiAffinity", key=HOST),
        }
        found = {kind: self._decisions(kind, make) for kind, make in decisions.items()}
        return found | {
            "preempting": self._preemptions(is_picky=False),
            "picky": self._preemptions(is_picky=True),
            "pod seen": self._sights(is_gone=False),
            "pod gone": self._sights(is_gone=True),
            "node seen": self._nodes(),
        }

    def do_all(self) -> None:
        """Do each deed as often as it is done, whatever it costs."""
        for costs in self.deeds().values():
            deque(costs, maxlen=0)
        self.leave()

    def _decisions(self, kind: str, make: Callable[[str, int], Raw]) -> Iterator[float]:
        world = self._world
        for _ in range(self._times):
            self.between()
            world.settle()
            raw = self.made(kind, make)
            name = raw["metadata"]["name"]
            yield self.took(raw, lambda name=name: name in world.placed)

    def made(self, kind: str, make: Callable[[str, int], Raw]) -> Raw:
        """Return the next pod of a kind, as the API server shows it."""
        self._number += 1
        name = f"{kind.replace(' ', '-')}-{self._number}"
        raw = as_made(make(name, self._number), name, self._number, run=0)
        raw["metadata"].update(name=name, uid=name, namespace="others")
        self._come.append(name)
        return raw

    def took(self, raw: Raw, is_done: Callable[[], bool]) -> float:
        """Let a pod come and wait for it; return what it cost."""
        _SOMETHING_ELSE.sum()
        started = time.process_time()
        self._world.pod(raw)
        for _ in range(_TRIES):
            self._world.schedule()
            if is_done():
                return time.process_time() - started
        raise AssertionError(f"{raw['metadata']['name']} of others is not decided on")

    def _preemptions(self, *, is_picky: bool) -> Iterator[float]:
        """Yield what a preemption costs; one who is picky wants a host port and a disk besides."""
        world = self._world
        for _ in range(SELDOM):
            self.between()
            world.settle()
            self._number += 1
            name = f"preempting-{self._number}"
            raw = scarce(name, self._number, priority=10)
            # Each of a shape of its own: what a search has found out is remembered for others.
            raw["spec"]["containers"][0]["resources"]["requests"]["cpu"] = f"{self._number}m"
            if is_picky:
                raw["spec"]["containers"][0]["ports"] = [{"hostPort": 9100}]
                disk = {"name": "disk", "gcePersistentDisk": {"pdName": "disk-of-others"}}
                raw["spec"].setdefault("volumes", []).append(disk)
            yield self.took(raw, lambda: any(map(_is_ours, world.evicted)))
            world.drop_pod(name)
            for victim in list(filter(_is_ours, world.evicted)):
                world.pod(world.evicted.pop(victim))

    def _sights(self, *, is_gone: bool) -> Iterator[float]:
        """Yield what it costs to see a pod that is placed elsewhere; or to see it gone."""
        for number in range(self._times):
            self.between()
            raw = self.made("seen", lambda _name, _number: plain("seen", cpu="1m"))
            raw["spec"]["nodeName"] = f"node-{number % 8}"
            name = raw["metadata"]["name"]
            seen = self._spent(lambda raw=raw: self._world.pod(raw))
            gone = self._spent(lambda name=name: self._world.drop_pod(name))
            yield gone if is_gone else seen

    def _nodes(self) -> Iterator[float]:
        for number in range(self._times):
            self.between()
            raw = self._world.node_raw(number % 8, room=251 + number % 2)
            yield self._spent(lambda raw=raw: self._world.node(raw))

    def _spent(self, deed: Callable[[], None]) -> float:
        _SOMETHING_ELSE.sum()
        started = time.process_time()
        deed()
        return time.process_time() - started

    def leave(self) -> None:
        """Take all pods of others away, and put nodes back as they were."""
        for name in self._come:
            self._world.drop_pod(name)
        self._come.clear()
        for number in range(8):
            self._world.node(self._world.node_raw(number))
        self._world.settle()


def _is_ours(victim: str) -> bool:
    return victim.startswith("scarce")


Costs: TypeAlias = dict[str, tuple[list[float], list[float]]]


def compared(harmed: Others, spared: Others) -> Costs:
    """Return what each deed costs with harm and without, done by turns."""
    with_harm, without = harmed.deeds(), spared.deeds()
    found: Costs = {}
    for deed, costs in with_harm.items():
        pairs = list(zip(costs, without[deed], strict=True))
        found[deed] = [dear for dear, _ in pairs], [cheap for _, cheap in pairs]
    harmed.leave()
    spared.leave()
    return found
