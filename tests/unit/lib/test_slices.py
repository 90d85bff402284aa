"""Slices measure who holds the loop, and know when to let go."""

import asyncio

from k8s_scheduler.lib.slices import Slice, SliceMeter


async def test_a_slice_is_full_at_half_its_budget_and_starts_anew_after_a_breath():
    now = [0.0]
    reported = []
    meter = SliceMeter(lambda owner, seconds: reported.append((owner, seconds)), lambda: now[0])
    part = meter.start("owner")
    assert not part.full()
    now[0] = 0.011
    assert part.full()
    await part.breathe()
    assert not part.full()
    now[0] = 0.012
    part.finish()
    assert [(o, round(s, 3)) for o, s in reported] == [("owner", 0.011), ("owner", 0.001)]


async def test_others_run_during_a_breath():
    ran = []
    asyncio.get_running_loop().call_soon(ran.append, "other")
    await SliceMeter(lambda *_: None).start("owner").breathe()
    assert ran == ["other"]


def test_who_had_to_wait_for_the_processor_is_not_full():
    cpu, wall = [0.0], [0.0]
    part = Slice("owner", lambda *_: None, lambda: cpu[0], lambda: wall[0])
    cpu[0], wall[0] = 0.001, 5.0
    assert not part.full()
    cpu[0] = 0.011
    assert part.full()


def test_the_cpu_clock_is_not_asked_before_there_was_time_to_use_so_much():
    asked = []
    wall = [0.0]

    def cpu_clock():
        asked.append(wall[0])
        return 1.0

    part = Slice("owner", lambda *_: None, cpu_clock, lambda: wall[0])
    wall[0] = 0.009
    assert not part.full()
    assert asked == [0.0]
