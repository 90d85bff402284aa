"""The memory of a process over time, and whether it has come to rest."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# The end of a half: so many seconds of samples, by their median. One sample may be a peak.
_END_SECONDS = 300.0
MOST_GROWTH = 1.05


@dataclass(frozen=True, slots=True)
class Sample:
    """One look: seconds since the start, resident memory, and what the daemon had done by then."""

    seconds: float
    rss_bytes: int
    bound: float
    waiting: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the curve says; `problems` is empty if all is well."""

    first_bytes: float
    second_bytes: float
    peak_bytes: int
    problems: tuple[str, ...]

    @property
    def growth(self) -> float:
        """The end of the second half as a multiple of the end of the first."""
        return self.second_bytes / self.first_bytes


def judge(samples: Sequence[Sample], *, seconds: float, ceiling_bytes: int) -> Verdict:
    """Judge a run of so many seconds: memory at the end of its two halves, and at its peak."""
    first = _at_end(samples, seconds / 2)
    second = _at_end(samples, seconds)
    peak = max(sample.rss_bytes for sample in samples)
    problems = []
    if second > first * MOST_GROWTH:
        problems.append(
            f"memory grew: {second / 2**20:.1f} MiB at the end, {first / 2**20:.1f} MiB half-way, "
            f"more than {MOST_GROWTH:g} times as much"
        )
    if peak > ceiling_bytes:
        problems.append(
            f"the ceiling of {ceiling_bytes / 2**20:.0f} MiB was passed: {peak / 2**20:.0f} MiB"
        )
    if samples[-1].bound <= _nearest(samples, seconds / 2).bound:
        problems.append("no pod was bound in the second half")
    return Verdict(first, second, peak, tuple(problems))


def _at_end(samples: Sequence[Sample], until: float) -> float:
    found = [s.rss_bytes for s in samples if until - _END_SECONDS <= s.seconds <= until]
    return statistics.median(found or [_nearest(samples, until).rss_bytes])


def _nearest(samples: Sequence[Sample], seconds: float) -> Sample:
    return min(samples, key=lambda sample: abs(sample.seconds - seconds))


def draw(samples: Sequence[Sample], *, width: int = 60) -> str:
    """Return the curve as text, a line for each stretch of time."""
    peak = max(sample.rss_bytes for sample in samples)
    step = max(1, len(samples) // 40)
    lines = []
    for sample in samples[::step]:
        bar = "█" * round(sample.rss_bytes / peak * width)
        lines.append(
            f"{sample.seconds / 60:6.1f} min {sample.rss_bytes / 2**20:7.1f} MiB "
            f"{sample.bound:8.0f} bound {sample.waiting:5.0f} waiting {bar}"
        )
    return "\n".join(lines)
