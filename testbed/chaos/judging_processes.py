"""The replicas as processes: how they ended, what they complained of, whether they grow."""

import signal
import statistics
from collections.abc import Iterator, Sequence

from testbed.chaos.evidence import Evidence, Finding, Sample
from testbed.chaos.judging_reloads import met_bad_file
from testbed.chaos.plan import Action

# A process is judged by its growth when it has lived so long: its first part is warm-up.
WARM_UP_SECONDS = 20.0
_BASE_SECONDS = 20.0
_LAST_SECONDS = 10.0
GROWTH_FACTOR = 1.5
GROWTH_BYTES = 48 * 1024 * 1024
GROWTH_FILES = 64

STOPPED = 0
KILLED = -signal.SIGKILL
LEASE_LOST = 1
BAD_CONFIGURATION = 2
# A replica that is told to end is seen to be gone within this time: the run looks every second, but
# not while it waits for an API server that it has restarted.
END_SECONDS = 60.0
_ENDS = frozenset({Action.STOP_LEADER, Action.KILL_LEADER})
LOST_WORDS = "Leaderelection lost"
# Lines that a healthy replica never writes, whatever the world does to it.
_NEVER = (
    "Traceback (most recent call last)",
    "Internal failure",
    "a kept evaluation was stale",
    "fits and was not woken",
)
_ZERO_METRICS = (
    'k8s_scheduler_shape_verifications_total{result="different"}',
    "k8s_scheduler_parked_but_feasible_total",
)


def broken_replicas(evidence: Evidence) -> Iterator[Finding]:
    """Yield ends that nobody asked for, and complaints about itself."""
    for end in evidence.ends:
        lost_lease = end.code == LEASE_LOST and LOST_WORDS in end.last_words
        bad_file = end.code == BAD_CONFIGURATION and met_bad_file(evidence, end.at)
        # Who is told to stop gives back what it holds and ends well.
        as_asked = end.asked and end.code in {STOPPED, KILLED}
        if not as_asked and not lost_lease and not bad_file:
            words = end.last_words.splitlines()[-1:] or ["(silent)"]
            yield Finding("died", f"{end.process} ended with {end.code}: {words[0]}")
    for process, log in evidence.logs.items():
        for line in _NEVER:
            if line in log:
                yield Finding("complaint", f"{process} says {line!r}")
    for process, metrics in evidence.metrics.items():
        for name in _ZERO_METRICS:
            if metrics.get(name, 0.0) > 0:
                yield Finding("complaint", f"{process}: {name} is {metrics[name]:g}")


def endless_replicas(evidence: Evidence) -> Iterator[Finding]:
    """Yield replicas that were told to end and did not."""
    for done in evidence.done:
        until = done.at + END_SECONDS
        if done.action not in _ENDS or not done.was_done or until > evidence.ended_at:
            continue
        ends = (end.at for end in evidence.ends if end.process.startswith(f"{done.detail}-"))
        if not any(done.at <= at <= until for at in ends):
            what = f"{done.action}, and {done.detail} was still there {END_SECONDS:.0f} s later"
            yield Finding("lives on", what)


def growing_replicas(evidence: Evidence) -> Iterator[Finding]:
    """Yield processes whose memory or open files grow beyond what warming up explains."""
    for process, base, end in grown_up_replicas(evidence):
        yield from _grown(process, base, end)


def grown_up_replicas(evidence: Evidence) -> Iterator[tuple[str, list[Sample], list[Sample]]]:
    """Yield the processes that lived long enough, with samples after warm-up and from the end."""
    by_process: dict[str, list[Sample]] = {}
    for sample in evidence.samples:
        by_process.setdefault(sample.process, []).append(sample)
    for process, samples in by_process.items():
        born, last = samples[0].at, samples[-1].at
        warm = born + WARM_UP_SECONDS
        base = [s for s in samples if warm <= s.at < warm + _BASE_SECONDS]
        end = [s for s in samples if s.at > max(last - _LAST_SECONDS, warm + _BASE_SECONDS)]
        if base and end:
            yield process, base, end


def _grown(process: str, base: Sequence[Sample], end: Sequence[Sample]) -> Iterator[Finding]:
    before = statistics.median(sample.rss_bytes for sample in base)
    after = statistics.median(sample.rss_bytes for sample in end)
    if after > before * GROWTH_FACTOR + GROWTH_BYTES:
        grown = f"from {before / 2**20:.0f} to {after / 2**20:.0f} MiB"
        yield Finding("grows", f"{process}: memory went {grown}")
    files = max(sample.open_files for sample in base)
    left = min(sample.open_files for sample in end)
    if left > files + GROWTH_FILES:
        yield Finding("grows", f"{process}: open files went from {files} to {left}")
