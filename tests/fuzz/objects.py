"""Hostile pods and nodes by chance, and what must hold while they come and go.

Promises: nothing raises; no message takes over a second of CPU; a pod that can't be decided fails
its own attempt and nobody else's, so pods that are right are never told of a SchedulerError; and
the core comes to rest.
"""

import asyncio
import itertools
import json
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.builders import make_node, make_pod
from tests.fuzz.hostile import NODE_NAMES, NODE_TRAITS, POD_TRAITS, Dice, Raw
from tests.fuzz.mutations import mutated
from tests.fuzz.worlds import World

EPISODE = 200
_SMALL = 20_000


def right_pod(rng: Dice, number: int) -> Raw:
    """Return a pod that nothing is wrong with yet."""
    raw = make_pod(f"p{number}").label(app=rng.choice("ab"), zone=rng.choice("ab")).raw
    raw["spec"]["containers"] = [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]
    if rng.random() < 0.4:
        raw["spec"]["nodeName"] = rng.choice((*NODE_NAMES, "s0", "s1", "nobody"))
    return raw


def objects(seed: int, count: int) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, event, JSON text)."""
    rng = Dice(seed)
    for number in range(count):
        rng.wild = rng.random() < 0.25
        is_pod = rng.random() < 0.75
        known = rng.randrange(number + 1) if rng.random() < 0.3 else number
        if is_pod:
            raw, traits = right_pod(rng, known), POD_TRAITS
        else:
            raw, traits = make_node(rng.choice(NODE_NAMES)).raw, NODE_TRAITS
        for trait in rng.sample(traits, rng.choice((0, 1, 1, 2, 3))):
            trait(raw, rng)
        raw["metadata"].setdefault("resourceVersion", str(number + 1))
        text = _json(raw)
        # Accidents to large objects take long to make, and show nothing that small ones don't.
        if rng.wild and len(text) < _SMALL:
            text = _json(mutated(raw, rng, times=rng.choice((1, 1, 2, 5))))
        event = rng.choice(("ADDED", "ADDED", "MODIFIED", "DELETED"))
        yield "Pod" if is_pod else "Node", event, text


def _json(raw: Raw) -> str:
    try:
        return json.dumps(raw)
    except RecursionError:
        return "[" * 20_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an episode; `problem` is empty if every promise was kept."""

    problem: str
    worst_cpu_seconds: float
    messages: int
    attempts_failed: int
    bound: int


def _outcome(world: World, problem: str) -> Outcome:
    core, desk = world.core, world.desk
    return Outcome(problem, core.worst_seconds, core.messages, desk.errors, desk.bound)


async def episode(sent: list[tuple[str, str, str]], *, nodes: int, every: int = 8) -> Outcome:
    """Send objects to a new world, and see whether it keeps its promises."""
    world = World()
    await world.start(nodes)
    for number, (kind, event, text) in enumerate(sent):
        await world.send(kind, event, text)
        if number % every == every - 1:
            await world.canary()
            try:
                world.decide()
            except Exception:  # noqa: BLE001  whatever it is, it is what is looked for
                return _outcome(world, world.problem() or traceback.format_exc(limit=-8))
        if problem := world.problem():
            return _outcome(world, problem)
    return _outcome(world, "")


def run(seed: int, count: int, *, keep: Callable[[str, bytes, str], object]) -> dict[str, float]:
    """Try so many; `keep(name, data, problem)` is called for what breaks the promise."""
    figures: dict[str, float] = {
        "tried": 0,
        "messages": 0,
        "bound": 0,
        "attempts_failed": 0,
        "failures": 0,
        "worst_cpu_seconds": 0.0,
    }
    everything = objects(seed, count)
    for number in range(0, count, EPISODE):
        sent = list(itertools.islice(everything, EPISODE))
        nodes = (5, 100, 1000)[number // EPISODE % 3]
        outcome = asyncio.run(episode(sent, nodes=nodes))
        figures["tried"] += len(sent)
        for name in ("messages", "bound", "attempts_failed"):
            figures[name] += getattr(outcome, name)
        worst = max(figures["worst_cpu_seconds"], outcome.worst_cpu_seconds)
        figures["worst_cpu_seconds"] = worst
        if outcome.problem:
            figures["failures"] += 1
            data = "".join(f"{kind} {event} {text}\n" for kind, event, text in sent)
            keep(f"objects-{seed}-{number}-{nodes}.txt", data.encode(), outcome.problem)
    return figures
