"""Cases in episodes: some of them, one after the other, in one cluster."""

import asyncio
import gc
import time
import traceback
from collections.abc import Callable, Iterator
from itertools import groupby

from tests.fuzz.at_limits.cases import LARGE, Case, cases
from tests.fuzz.at_limits.growth import judge_growth
from tests.fuzz.at_limits.judging import Figures, Street

EPISODE = 25
# Nodes of one episode after the other; in the last one nothing is limited.
SIZES = (300, 5000, 50, 1000, 300, 5000, 50, 100)
Keep = Callable[[str, bytes, str], object]


def size_of_episode(number: int) -> int:
    """Return how many nodes there are when a case of that number happens."""
    return SIZES[number // EPISODE % len(SIZES)]


def is_unlimited(number: int) -> bool:
    """Return whether limits are off when a case of that number happens."""
    return number // EPISODE % len(SIZES) == len(SIZES) - 1


def run(
    seed: int,
    count: int,
    *,
    keep: Keep,
    minutes: float = 0.0,
    only: int | None = None,
    size: Callable[[int], int] = size_of_episode,
) -> dict[str, float]:
    """Try cases until there were so many objects at the API's limits.

    `keep(name, data, problem)` is called for what breaks a promise. With `minutes` it ends when
    they are over, which is a failure if not everything was tried. `only` is the number of the only
    case to be tried.
    """
    deadline = time.monotonic() + 60 * minutes if minutes else float("inf")
    figures: dict[str, float] = {
        "tried": 0,
        "at_the_limits": 0,
        "objects": 0,
        "kept_out": 0,
        "failures": 0,
        "worst_ratio": 0.0,
        "worst_cpu_seconds": 0.0,
        "worst_memory_percent": 0.0,
    }
    everything = cases(seed, count, nodes=size)
    for _, episode in groupby(everything, key=lambda case: case.number // EPISODE):
        asyncio.run(_episode(seed, _only(episode, only), figures, keep, size))
        if time.monotonic() > deadline:
            if figures["at_the_limits"] < count:
                figures["failures"] += 1
                keep(f"limits-{seed}-time", b"", f"{minutes:g} minutes are over")
            break
    return figures


def _only(episode: Iterator[Case], only: int | None) -> Iterator[Case]:
    return (case for case in episode if only is None or case.number == only)


async def _episode(
    seed: int,
    episode: Iterator[Case],
    figures: dict[str, float],
    keep: Keep,
    size: Callable[[int], int],
) -> None:
    street: Street | None = None
    gc.collect()
    for case in episode:
        nodes = size(case.number)
        if is_unlimited(case.number):
            found = await judge_growth(seed, case, nodes=nodes)
        else:
            if street is None:
                street = await _street(nodes, case)
            found = await _judged(street, case)
            if found.problems:
                # Alone, in a cluster of its own: what is the cluster's history is told apart.
                alone = await _judged(await _street(nodes, case), case)
                before = "" if alone.problems else "after the cases before it, "
                found.problems = alone.problems or [before + found.problems[0]]
                street = None
        _count(figures, case, found)
        if found.problems:
            figures["failures"] += 1
            lines = [f"{k} {e} {text}\n" for k, e, text in (t.come() for t in case.things)]
            problem = "\n".join((case.title, f"{nodes} nodes", *found.problems))
            keep(f"limits-{seed}-{case.number}.txt", "".join(lines).encode(), problem)
    gc.unfreeze()


async def _street(nodes: int, case: Case) -> Street:
    gc.unfreeze()
    gc.collect()
    street = Street(nodes)
    await street.settle(case)
    # What stays is not looked through at each collection, as in the daemon.
    gc.collect()
    gc.freeze()
    return street


async def _judged(street: Street, case: Case) -> Figures:
    try:
        return await street.judge(case)
    except Exception:  # noqa: BLE001  whatever it is, it is what is looked for
        raised = street.world.core.raised
        return Figures(problems=[raised or traceback.format_exc(limit=-8)])


def _count(figures: dict[str, float], case: Case, found: Figures) -> None:
    figures["tried"] += 1
    figures["at_the_limits"] += case.sort == LARGE
    figures["objects"] += len(case.things)
    figures["kept_out"] += found.kept_out
    figures["worst_ratio"] = max(figures["worst_ratio"], found.slower)
    figures["worst_cpu_seconds"] = max(figures["worst_cpu_seconds"], found.message_seconds)
    memory = max(figures["worst_memory_percent"], 100 * found.memory)
    figures["worst_memory_percent"] = memory
