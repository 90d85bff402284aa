"""Places a backlog of pods with this scheduler and with kube-scheduler, on equal beds.

    python -m testbed.bench --nodes 1000 --pods 5000

Each gets a bed of its own (etcd without fsync, API server, controller manager, no kwok), all
pods created before it starts, and no client-side rate limit. Counted is what both schedulers say
themselves (`scheduler_schedule_attempts_total`), so that looking costs the API server nothing.
The machine is shared and noisy: compare the two columns of one run, never figures of two.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from testbed.bed import Bed
from testbed.daemon import Daemon, Usage, usage_of
from testbed.errors import TestbedError
from testbed.options import CONTROLLER_MANAGER, SCHEDULER, BedOptions
from testbed.scheduler_page import ask
from testbed.workload import create_all, make_nodes, make_pods

_LOOK_SECONDS = 0.1
_LIMIT_SECONDS = 900.0
_SCHEDULED = re.compile(
    r'^scheduler_schedule_attempts_total\{[^}]*result="scheduled"[^}]*\} (\S+)', re.MULTILINE
)
_SLICE = re.compile(
    r'k8s_scheduler_loop_slice_seconds_bucket\{le="(?P<bound>[^"]+)",owner="(?P<owner>[^"]+)"\}'
)


@dataclass(frozen=True, slots=True)
class Result:
    """What one scheduler needed for the backlog."""

    scheduler: str
    nodes: int
    pods: int
    bound: int
    seconds: float
    pods_per_second: float
    cpu_ms_per_pod: float
    peak_rss_mib: float


def main(arguments: list[str]) -> int:
    """Run both; return the exit code."""
    parser = argparse.ArgumentParser(prog="testbed.bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--only", choices=("k8s-scheduler", "kube-scheduler"))
    parser.add_argument("--out", help="write the results there as JSON")
    options = parser.parse_args(arguments)
    runs: dict[str, Callable[[int, int], Result]] = {
        "k8s-scheduler": _ours,
        "kube-scheduler": _upstream,
    }
    try:
        results = [
            run(options.nodes, options.pods)
            for name, run in runs.items()
            if options.only in (None, name)
        ]
    except TestbedError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(_table(results))
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:  # noqa: PTH123 - a name as given
            json.dump([asdict(result) for result in results], file, indent=1)
    return 0 if all(result.bound == result.pods for result in results) else 1


def _ours(nodes: int, pods: int) -> Result:
    with Bed(BedOptions(components=(CONTROLLER_MANAGER,))) as bed:
        _fill(bed, nodes, pods, scheduler_name="k8s-scheduler")
        daemon = Daemon(bed).start()
        result = _measure(
            "k8s-scheduler",
            nodes,
            pods,
            page=lambda: daemon.get("/metrics")[1],
            usage=daemon.usage,
        )
        owner, seconds = longest_slice(daemon.metrics())
        print(f"longest slice of the event loop: at most {seconds * 1000:g} ms of CPU ({owner})")
        return result


def longest_slice(metrics: Mapping[str, float]) -> tuple[str, float]:
    """Return who held the event loop longest, and the bound of the bucket it fell into."""
    bounds: dict[str, list[tuple[float, float]]] = {}
    for name, count in metrics.items():
        if found := _SLICE.fullmatch(name):
            bounds.setdefault(found["owner"], []).append((float(found["bound"]), count))
    longest = {
        owner: min(bound for bound, count in buckets if count == max(c for _, c in buckets))
        for owner, buckets in bounds.items()
    }
    return max(longest.items(), key=lambda item: item[1])


def _upstream(nodes: int, pods: int) -> Result:
    options = BedOptions(
        components=(CONTROLLER_MANAGER, SCHEDULER),
        extra_flags={SCHEDULER: ["--kube-api-qps=5000", "--kube-api-burst=5000"]},
    )
    with Bed(options) as bed:
        bed.stop(SCHEDULER)
        _fill(bed, nodes, pods, scheduler_name="default-scheduler")
        bed.start(SCHEDULER)
        return _measure(
            "kube-scheduler",
            nodes,
            pods,
            page=lambda: ask(bed, "/metrics"),
            usage=lambda: _usage(bed),
        )


def _fill(bed: Bed, nodes: int, pods: int, *, scheduler_name: str) -> None:
    print(f"creating {nodes} nodes and {pods} pods for {scheduler_name} ...", flush=True)
    create_all(bed.client, make_nodes(nodes))
    create_all(bed.client, make_pods(pods, scheduler_name=scheduler_name), threads=8)


def _measure(
    name: str, nodes: int, pods: int, *, page: Callable[[], str], usage: Callable[[], Usage]
) -> Result:
    """Wait until the backlog is placed; time counts from the first bind that is seen."""
    started, first, bound = time.monotonic(), 0, 0
    begin = started
    while bound < pods and time.monotonic() - started < _LIMIT_SECONDS:
        bound = round(sum(float(value) for value in _SCHEDULED.findall(page())))
        if bound and not first:
            first, begin = bound, time.monotonic()
        time.sleep(_LOOK_SECONDS)
    seconds = time.monotonic() - begin
    cost = usage()
    return Result(
        scheduler=name,
        nodes=nodes,
        pods=pods,
        bound=bound,
        seconds=round(seconds, 1),
        pods_per_second=round((bound - first) / max(seconds, 0.001), 1),
        cpu_ms_per_pod=round(cost.cpu_seconds / max(bound, 1) * 1000, 2),
        peak_rss_mib=round(cost.peak_rss_bytes / 2**20, 1),
    )


def _usage(bed: Bed) -> Usage:
    pid = bed.pid(SCHEDULER)
    if pid is None:
        raise TestbedError("kube-scheduler has ended")
    return usage_of(pid)


def _table(results: list[Result]) -> str:
    rows = [("", *(result.scheduler for result in results))]
    for field, label in (
        ("bound", "pods bound"),
        ("seconds", "seconds, first to last bind"),
        ("pods_per_second", "pods/s"),
        ("cpu_ms_per_pod", "CPU per pod, ms (start included)"),
        ("peak_rss_mib", "peak memory, MiB"),
    ):
        rows.append((label, *(str(getattr(result, field)) for result in results)))
    return "\n".join(f"{row[0]:34}" + "".join(f"{cell:>16}" for cell in row[1:]) for row in rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
