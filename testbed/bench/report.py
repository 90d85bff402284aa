"""What came out of a benchmark: medians over the runs, as tables and as JSON."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from testbed.bench.contestants import BatchChoice
from testbed.bench.meter import SCHEDULER
from testbed.bench.provenance import CAVEATS
from testbed.bench.quality import Quality
from testbed.bench.runs import Run, median_of
from testbed.bench.scenarios import Counts
from testbed.bench.steady import Latency

OURS, UPSTREAM, NULL = "k8s-scheduler", "kube-scheduler", "null binder"
# This scheduler, judged by the order of its decisions.
RECORDED = "recorded"


@dataclass(slots=True)
class Outcome:
    """What one scheduler did with one workload."""

    workload: str
    contestant: str
    counts: Counts
    runs: list[Run] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    # Of the placement after each run.
    qualities: list[Quality] = field(default_factory=list)
    # Of this scheduler: the share of decisions in each run that were made from what it had kept.
    kept: list[float] = field(default_factory=list)
    # What it did not bring to an end.
    failures: list[str] = field(default_factory=list)
    # Of this scheduler, if it runs with another than its default.
    batch: BatchChoice | None = None

    def median(self, name: str) -> float:
        """Return the median of one figure of the runs."""
        return median_of(self.runs, lambda run: float(getattr(run, name)))

    def cpu(self, process: str) -> float:
        """Return the median of a process' CPU per pod, in milliseconds."""
        return median_of(self.runs, lambda run: run.cpu_ms_per_pod[process])

    def latency(self, name: str) -> float:
        """Return the median of one figure of the latencies; nan if there are none."""
        return _median(getattr(latency, name) for latency in self.latencies)

    def quality(self, name: str) -> float:
        """Return the median of one figure of the placements; nan if nobody could take it."""
        return _median(getattr(quality, name) for quality in self.qualities)

    @property
    def broken(self) -> int:
        """How many rules the placements break, all of them together."""
        return sum(sum(quality.violations.values()) for quality in self.qualities)

    @property
    def is_sound(self) -> bool:
        """Whether all pods were placed, and where they may be.

        Others than this scheduler may give up and lose events; who places blindly may break rules.
        """
        placed = all(run.bound == run.pods for run in self.runs)
        if self.contestant in {OURS, RECORDED} or self.batch is not None:
            told = all(run.told == run.pods for run in self.runs)
            placed = placed and told and not self.failures
        return placed and (self.contestant == NULL or not self.broken)


def _median(values: Iterable[float]) -> float:
    found = [float(value) for value in values if math.isfinite(value)]
    return statistics.median(found) if found else math.nan


def as_json(
    outcomes: Sequence[Outcome],
    settings: dict[str, Any],
    origin: dict[str, Any],
    *,
    took: float,
    error: str | None = None,
) -> dict[str, Any]:
    """Return everything, single runs included; `origin` is the provenance, `took` in seconds.

    `error` is what has put an end to the benchmark before its time.
    """
    return {
        **origin,
        "settings": settings,
        "took_seconds": round(took, 1),
        "error": error,
        "outcomes": [
            {
                "workload": outcome.workload,
                "scheduler": outcome.contestant,
                **asdict(outcome.counts),
                "pods_per_second": outcome.median("pods_per_second"),
                "middle_pods_per_second": outcome.median("middle_pods_per_second"),
                "cpu_ms_per_pod": {
                    name: outcome.cpu(name) for name in outcome.runs[0].cpu_ms_per_pod
                },
                "peak_rss_mib": outcome.median("peak_rss_mib"),
                "first_binding_seconds": outcome.median("first_binding_seconds"),
                "kept_shares": [round(share, 4) for share in outcome.kept],
                "latencies": [asdict(latency) for latency in outcome.latencies],
                "qualities": [_as_json(quality) for quality in outcome.qualities],
                "runs": [run.as_json() for run in outcome.runs],
            }
            for outcome in outcomes
            if outcome.runs
        ],
        "failures": [
            {"workload": outcome.workload, "scheduler": outcome.contestant, "what": failure}
            for outcome in outcomes
            for failure in outcome.failures
        ],
    }


def _as_json(quality: Quality) -> dict[str, Any]:
    """Return all of it; JSON has no word for what is not a number."""
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in asdict(quality).items()
    }


def table(outcomes: Sequence[Outcome]) -> Iterable[str]:
    """Yield the lines of the tables: every figure, then this scheduler's beside the others'."""
    yield (
        f"{'workload':16}{'scheduler':15}{'pods/s':>8}{'mid 80%':>9}{'CPU ms':>8}{'api ms':>8}"
        f"{'etcd ms':>8}{'MiB':>7}{'first s':>8}{'p50 ms':>8}{'p99 ms':>9}{'score':>8}"
        f"{'best':>6}{'even':>7}{'broken':>8}{'kept':>6}"
    )
    groups = _by_workload(outcomes)
    for found in groups.values():
        for outcome in found.values():
            yield _row(outcome)
    yield ""
    yield f"{'':16}{'of the null binder':>29}{'of kube-scheduler':>45}"
    yield (
        f"{OURS:16}{'pods/s':>9}{'api ms':>10}{'etcd ms':>10}{'pods/s':>13}{'CPU ms':>8}"
        f"{'MiB':>8}{'p99 ms':>8}{'score':>8}"
    )
    for workload, found in groups.items():
        if OURS in found:
            yield _comparison(workload, found)
    yield ""
    for outcome in outcomes:
        for note in _notes(outcome):
            yield f"{outcome.workload}, {outcome.contestant}{note}"
    yield from CAVEATS


def _notes(outcome: Outcome) -> Iterable[str]:
    """Yield what has to be known beside the figures."""
    for failure in outcome.failures:
        yield f", gave up: {failure}"
    for run in outcome.runs:
        if run.told < run.pods:
            yield f": {run.pods - run.told} of {run.pods} events were never written."
    for latency in outcome.latencies:
        if latency.is_off:
            yield f": pods arrived at {latency.achieved_rate:.1f} per second, not {latency.rate:g}."


def _by_workload(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Outcome]]:
    found: dict[str, dict[str, Outcome]] = {}
    for outcome in outcomes:
        if outcome.runs:
            found.setdefault(outcome.workload, {})[outcome.contestant] = outcome
    return found


def _row(outcome: Outcome) -> str:
    score = best = even = broken = ""
    kept = f"{_median(outcome.kept):.0%}" if outcome.kept else ""
    if outcome.qualities:
        even, broken = f"{outcome.quality('deviation_per_node'):.2f}", str(outcome.broken)
        if math.isfinite(mean := outcome.quality("mean_score")):
            score, best = f"{mean:.1f}", f"{outcome.quality('best_share'):.0%}"
    return (
        f"{outcome.workload:16}{outcome.contestant:15}{outcome.median('pods_per_second'):8.0f}"
        f"{outcome.median('middle_pods_per_second'):9.0f}{outcome.cpu(SCHEDULER):8.2f}"
        f"{outcome.cpu('api'):8.2f}{outcome.cpu('etcd'):8.2f}{outcome.median('peak_rss_mib'):7.0f}"
        f"{outcome.median('first_binding_seconds'):8.1f}{_number(outcome.latency('p50_ms')):>8}"
        f"{_number(outcome.latency('p99_ms')):>9}{score:>8}{best:>6}{even:>7}{broken:>8}"
        f"{kept:>6}"
    )


def _comparison(workload: str, found: dict[str, Outcome]) -> str:
    ours, null, kube = found[OURS], found.get(NULL), found.get(UPSTREAM)
    of_null = of_kube = ("", "", "")
    p99 = score = ""
    if null is not None:
        of_null = (
            share(ours.median("pods_per_second"), null.median("pods_per_second")),
            times(ours.cpu("api"), null.cpu("api")),
            times(ours.cpu("etcd"), null.cpu("etcd")),
        )
    if kube is not None:
        of_kube = (
            times(ours.median("pods_per_second"), kube.median("pods_per_second")),
            _fraction(ours.cpu(SCHEDULER), kube.cpu(SCHEDULER)),
            times(ours.median("peak_rss_mib"), kube.median("peak_rss_mib")),
        )
        p99 = times(ours.latency("p99_ms"), kube.latency("p99_ms"))
        more = ours.quality("mean_score") - kube.quality("mean_score")
        score = f"{more:+.1f}" if math.isfinite(more) else ""
    return (
        f"{workload:16}{of_null[0]:>9}{of_null[1]:>10}{of_null[2]:>10}{of_kube[0]:>13}"
        f"{of_kube[1]:>8}{of_kube[2]:>8}{p99:>8}{score:>8}"
    )


def share(part: float, whole: float) -> str:
    """Return a part of a whole in percent; nothing where there is no whole."""
    return f"{part / whole:.0%}" if whole and math.isfinite(part / whole) else ""


def times(figure: float, other: float) -> str:
    """Return how many times another figure it is; nothing where that means nothing."""
    return f"{figure / other:.2f}x" if other and math.isfinite(figure / other) else ""


def _fraction(part: float, whole: float) -> str:
    return f"1/{whole / part:.1f}" if part else ""


def _number(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) else ""
