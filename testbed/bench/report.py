"""What came out of a benchmark: medians over the runs, as a table and as JSON."""

import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testbed.bench.quality import Quality
from testbed.bench.runs import SCHEDULER, Run, median_of

OURS, UPSTREAM, NULL = "k8s-scheduler", "kube-scheduler", "null binder"

# What this set-up can't show; it stands under every table.
CAVEATS = (
    "etcd runs without fsync: a real one is slower, for every scheduler.",
    "Everything shares the cores listed: kube-scheduler's 16 workers have no 16 cores to run on.",
    "There are no kubelets: nobody reports pods as running, and nothing is ever pulled.",
    "The machine is shared and noisy: compare columns of one run, never figures of two.",
)


@dataclass(frozen=True, slots=True)
class Latency:
    """From creation to Binding at a steady rate of arrival, in milliseconds."""

    rate: float
    pods: int
    p50_ms: float
    p99_ms: float


@dataclass(slots=True)
class Outcome:
    """What one scheduler did with one workload."""

    workload: str
    contestant: str
    runs: list[Run] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    quality: Quality | None = None

    def median(self, name: str) -> float:
        """Return the median of one figure of the runs."""
        return median_of(self.runs, lambda run: float(getattr(run, name)))

    def cpu(self, process: str) -> float:
        """Return the median of a process' CPU per pod, in milliseconds."""
        return median_of(self.runs, lambda run: run.cpu_ms_per_pod[process])

    def latency(self, name: str) -> float:
        """Return the median of one figure of the latencies; nan if there are none."""
        found = sorted(float(getattr(latency, name)) for latency in self.latencies)
        return found[len(found) // 2] if found else float("nan")


def as_json(outcomes: Sequence[Outcome], settings: dict[str, Any]) -> dict[str, Any]:
    """Return everything, single runs included."""
    return {
        "date": datetime.now(tz=UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "settings": settings,
        "caveats": list(CAVEATS),
        "outcomes": [
            {
                "workload": outcome.workload,
                "scheduler": outcome.contestant,
                "pods_per_second": outcome.median("pods_per_second"),
                "middle_pods_per_second": outcome.median("middle_pods_per_second"),
                "cpu_ms_per_pod": {
                    name: outcome.cpu(name) for name in outcome.runs[0].cpu_ms_per_pod
                },
                "peak_rss_mib": outcome.median("peak_rss_mib"),
                "first_binding_seconds": outcome.median("first_binding_seconds"),
                "latencies": [asdict(latency) for latency in outcome.latencies],
                "quality": None if outcome.quality is None else asdict(outcome.quality),
                "runs": [_run(run) for run in outcome.runs],
            }
            for outcome in outcomes
        ],
    }


def _run(run: Run) -> dict[str, Any]:
    found = asdict(run)
    del found["order"]
    return found


def machine() -> dict[str, Any]:
    """Return what it ran on."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    return {
        "processor": model[1] if model else platform.machine(),
        "cores": len(re.findall(r"^processor\s*:", info, re.MULTILINE)),
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def table(outcomes: Sequence[Outcome]) -> Iterable[str]:
    """Yield the lines of the table, workload by workload."""
    yield (
        f"{'workload':14}{'scheduler':15}{'pods/s':>8}{'mid 80%':>9}{'of null':>9}"
        f"{'CPU ms':>8}{'of kube':>9}{'api ms':>8}{'etcd ms':>8}{'MiB':>7}{'first s':>8}"
        f"{'p50 ms':>8}{'p99 ms':>9}{'score':>8}{'even':>7}"
    )
    for workload in dict.fromkeys(outcome.workload for outcome in outcomes):
        found = {o.contestant: o for o in outcomes if o.workload == workload and o.runs}
        for outcome in found.values():
            yield _row(outcome, found.get(NULL), found.get(UPSTREAM))
    yield ""
    yield from CAVEATS


def _row(outcome: Outcome, null: Outcome | None, upstream: Outcome | None) -> str:
    rate, cpu = outcome.median("pods_per_second"), outcome.cpu(SCHEDULER)
    of_null = "" if null is None else f"{rate / null.median('pods_per_second'):.0%}"
    of_kube = "" if upstream is None else _fraction(cpu, upstream.cpu(SCHEDULER))
    quality = outcome.quality
    score = "" if quality is None else f"{quality.mean_score:.1f}"
    even = "" if quality is None else f"{quality.deviation_per_node:.2f}"
    return (
        f"{outcome.workload:14}{outcome.contestant:15}{rate:8.0f}"
        f"{outcome.median('middle_pods_per_second'):9.0f}{of_null:>9}{cpu:8.2f}{of_kube:>9}"
        f"{outcome.cpu('api'):8.2f}{outcome.cpu('etcd'):8.2f}{outcome.median('peak_rss_mib'):7.0f}"
        f"{outcome.median('first_binding_seconds'):8.1f}{outcome.latency('p50_ms'):8.0f}"
        f"{outcome.latency('p99_ms'):9.0f}{score:>8}{even:>7}"
    )


def _fraction(part: float, whole: float) -> str:
    return f"1/{whole / part:.1f}" if part else ""
