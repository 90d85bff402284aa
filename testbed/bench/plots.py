"""The figures of a benchmark as pictures, each with what it ran on and what it does not show.

    python -m testbed.bench.plots FILE.json [--out docs/benchmarks]

The same file gives the same pictures, byte for byte.
"""

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.bench.charts import Bar, Chart, Panel, draw
from testbed.bench.report import NULL, OURS, UPSTREAM
from testbed.errors import TestbedError

OUT = Path("docs/benchmarks")

_SCHEDULERS = (OURS, UPSTREAM, NULL)
_PROCESSES = {"scheduler": "scheduler", "api": "API server", "etcd": "etcd"}

Outcome = Mapping[str, Any]


def main(arguments: list[str]) -> int:
    """Draw; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m testbed.bench.plots", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("file", type=Path, help="what `make bench OUT=file.json` has written")
    parser.add_argument("--out", type=Path, default=OUT, help="a folder; it is made if need be")
    options = parser.parse_args(arguments)
    try:
        for path in write_plots(read(options.file), options.out):
            print(path)
    except TestbedError as error:
        print(f"plots: {error}", file=sys.stderr)
        return 1
    return 0


def read(path: Path) -> dict[str, Any]:
    """Return what a benchmark has written; TestbedError if it is not that."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TestbedError(f"{path} can't be read: {error}") from error
    needed = ("date", "machine", "versions", "caveats", "outcomes")
    if not isinstance(found, dict) or (missing := [key for key in needed if key not in found]):
        lacks = "" if not isinstance(found, dict) else f": it has no {', '.join(missing)}"
        raise TestbedError(f"{path} is not what `make bench OUT=file.json` writes{lacks}")
    if not found["outcomes"]:
        raise TestbedError(f"{path} has no outcomes: the benchmark ended before its first one")
    return found


def write_plots(found: Mapping[str, Any], folder: Path) -> Iterator[Path]:
    """Write the pictures; yield their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, chart in charts(found).items():
        path = folder / f"{name}.svg"
        path.write_text(draw(chart), encoding="utf-8")
        yield path


def charts(found: Mapping[str, Any]) -> dict[str, Chart]:
    """Return the charts by the names of their files; what was not measured is left out."""
    outcomes: Sequence[Outcome] = found["outcomes"]
    pictures = {
        "throughput": (
            "Pods placed per second",
            f"{size(outcomes)}. From the first Binding until all Bindings and events are written.",
            [_panel("pods/s", outcomes, _each("pods_per_second"))],
        ),
        "cpu": (
            "CPU per pod",
            f"{size(outcomes)}. Milliseconds of each process while the backlog is placed.",
            [
                _panel(f"{title}, ms", outcomes, _each("cpu_ms_per_pod", key), digits=2)
                for key, title in _PROCESSES.items()
            ],
        ),
        "latency": (
            "From creation to Binding at a steady rate of arrival",
            f"{steady(outcomes)}. The scale is logarithmic.",
            [
                _panel(f"{share}, ms", outcomes, _latency(f"{share}_ms"), is_logarithmic=True)
                for share in ("p50", "p99")
            ],
        ),
        "memory": (
            "Peak memory, and start-up",
            f"{size(outcomes)}. The start is that of the scheduler's process.",
            [
                _panel("peak resident memory, MiB", outcomes, _each("peak_rss_mib")),
                _panel(
                    "start to first Binding, s",
                    outcomes,
                    _each("first_binding_seconds"),
                    digits=1,
                ),
            ],
        ),
    }
    groups = list(dict.fromkeys(str(outcome["workload"]) for outcome in outcomes))
    return {
        name: Chart(
            title=title,
            subtitle=subtitle,
            groups=groups,
            series=_series(panels),
            panels=panels,
            caption=caption(found),
        )
        for name, (title, subtitle, panels) in pictures.items()
        if all(panel.bars for panel in panels)
    }


def caption(found: Mapping[str, Any]) -> list[str]:
    """Return what stands below every picture."""
    machine, versions = found["machine"], dict(found["versions"])
    ours = f"k8s-scheduler {versions.pop('k8s-scheduler')} ({versions.pop('commit')})"
    python = f"Python {versions.pop('python')}"
    others = [f"{name} {version.removeprefix('v')}" for name, version in versions.items()]
    ran_on = f"{machine['cores']} cores, {machine['processor']}, Linux {machine['kernel']}"
    return [
        f"{found['date'][:10]}; {ran_on}.",
        "; ".join((ours, python, *others)) + ".",
        " ".join(found["caveats"]),
    ]


def size(outcomes: Sequence[Outcome]) -> str:
    """Return how large the clusters were and how often each was run."""
    nodes = _range(outcome["nodes"] for outcome in outcomes)
    pods = _range(outcome["pods"] for outcome in outcomes)
    runs = _range(len(outcome["runs"]) for outcome in outcomes)
    return f"{nodes} nodes, {pods} pods; median of {runs} interleaved runs, which are the circles"


def steady(outcomes: Sequence[Outcome]) -> str:
    """Return how pods arrived one by one."""
    nodes = _range(outcome["nodes"] for outcome in outcomes)
    found = [latency for outcome in outcomes for latency in outcome["latencies"]]
    rate = _range(int(latency["rate"]) for latency in found)
    pods = _range(latency["pods"] for latency in found)
    return f"{nodes} nodes; {pods} pods arrive at {rate} per second, once the backlog is placed"


def _series(panels: Sequence[Panel]) -> list[str]:
    """Return the schedulers that have a bar, in their order."""
    shown = {scheduler for panel in panels for _, scheduler in panel.bars}
    return [name for name in _SCHEDULERS if name in shown]


def _range(values: Iterator[int]) -> str:
    found = sorted(set(values))
    if not found:
        return "no"
    low, high = found[0], found[-1]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _panel(
    title: str,
    outcomes: Sequence[Outcome],
    bar: Callable[[Outcome], Bar | None],
    *,
    is_logarithmic: bool = False,
    digits: int = 0,
) -> Panel:
    made = {(str(o["workload"]), str(o["scheduler"])): bar(o) for o in outcomes}
    bars = {key: bar for key, bar in made.items() if bar is not None and math.isfinite(bar.value)}
    return Panel(title, bars, is_logarithmic=is_logarithmic, digits=digits)


def _each(*path: str) -> Callable[[Outcome], Bar | None]:
    """Return what reads one figure: of the medians, and of every run."""

    def read_figure(outcome: Outcome) -> Bar:
        return Bar(_at(outcome, path), tuple(_at(run, path) for run in outcome["runs"]))

    return read_figure


def _latency(name: str) -> Callable[[Outcome], Bar | None]:
    def read_figure(outcome: Outcome) -> Bar | None:
        found = tuple(float(latency[name]) for latency in outcome["latencies"])
        return Bar(statistics.median(found), found) if found else None

    return read_figure


def _at(found: Mapping[str, Any], path: Sequence[str]) -> float:
    value: Any = found
    for key in path:
        value = value[key]
    return float(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
