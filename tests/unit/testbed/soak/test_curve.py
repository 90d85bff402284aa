"""What a curve of memory says: growth between the halves, the ceiling, a standstill."""

import pytest

from testbed.soak.curve import Sample, draw, judge

HOUR = 3600.0


def curve(rss, *, bound=lambda seconds: seconds):
    """Samples of two hours; `rss` is told the seconds, and answers MiB."""
    times = [10.0 * n for n in range(1, 721)]
    return [Sample(t, int(rss(t) * 2**20), bound(t), 0.0) for t in times]


def verdict(samples, ceiling_mib=256):
    return judge(samples, seconds=2 * HOUR, ceiling_bytes=ceiling_mib * 2**20)


def test_memory_that_has_come_to_rest_is_well():
    found = verdict(curve(lambda t: 100 if t > 600 else 50))
    assert found.problems == ()
    assert found.growth == 1.0


def test_memory_that_keeps_growing_is_told():
    found = verdict(curve(lambda t: 100 + t / HOUR * 10))
    assert any("memory grew" in problem for problem in found.problems)
    assert found.growth == pytest.approx(120 / 110, abs=0.01)


def test_five_in_a_hundred_are_no_growth():
    assert verdict(curve(lambda t: 100 if t <= HOUR else 104)).problems == ()
    assert verdict(curve(lambda t: 100 if t <= HOUR else 106)).problems != ()


def test_one_peak_at_the_end_is_no_growth_but_counts_for_the_ceiling():
    samples = curve(lambda t: 300 if t == 2 * HOUR else 100)
    (problem,) = verdict(samples).problems
    assert "the ceiling of 256 MiB was passed: 300 MiB" in problem


def test_a_daemon_that_binds_nothing_any_more_is_told():
    found = verdict(curve(lambda _: 100, bound=lambda t: min(t, HOUR)))
    assert found.problems == ("no pod was bound in the second half",)


def test_the_picture_has_a_line_for_each_stretch_of_time():
    lines = draw(curve(lambda _: 100)).splitlines()
    assert 40 <= len(lines) <= 45
    assert "100.0 MiB" in lines[0]
