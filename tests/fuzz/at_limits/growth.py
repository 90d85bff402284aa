"""With limits off an object may cost more, but no more than its size says."""

import traceback

from tests.fuzz.at_limits.cases import Case, make_case
from tests.fuzz.at_limits.judging import Figures
from tests.fuzz.at_limits.shared_world import RAISED, SharedWorld

# Below this, what does not grow with the object is most of it.
_WORTH_MEASURING_SECONDS = 0.3
# Twice the work is linear, four times would be the square.
_GROWTH = 3.0
_MEASURED_AGAIN = 3


async def judge_growth(seed: int, case: Case, *, nodes: int) -> Figures:
    """Let a case happen where nothing is limited, and in half its size."""
    found = Figures()
    try:
        whole = await _seconds(case, nodes)
        if whole > _WORTH_MEASURING_SECONDS:
            half = make_case(seed, case.number, nodes=nodes, scale=0.5)
            ratio = whole / await _seconds(half, nodes)
            for _ in range(_MEASURED_AGAIN):
                if ratio <= _GROWTH:
                    break
                ratio = min(ratio, await _seconds(case, nodes) / await _seconds(half, nodes))
            if ratio > _GROWTH:
                found.problems.append(f"twice the size takes {ratio:.1f} times the CPU")
    except Exception:  # noqa: BLE001  whatever it is, it is what is looked for
        found.problems.append(traceback.format_exc(limit=-8))
    return found


async def _seconds(case: Case, nodes: int) -> float:
    world = SharedWorld(RAISED)
    await world.settle(nodes)
    before = world.core.seconds
    await world.tell(thing.come() for thing in case.things)
    await world.tell(thing.go() for thing in case.things)
    if world.core.raised:
        raise AssertionError(world.core.raised)
    return world.core.seconds - before
