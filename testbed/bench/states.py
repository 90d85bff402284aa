"""`make bench-states`: what the state of a cluster costs, this scheduler beside kube-scheduler.

python -m testbed.bench.states [--state NAME ...] [--nodes N] [--repeats R] [--minutes M] ...

bound          many pods are in place: memory, start-up to ready, first Binding
unschedulable  many pods fit nowhere: how much slower others are placed than without them
nodes          many nodes: how much slower pods are placed than on fewer
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.bench.cli import CONTESTANTS, PODS, Bar
from testbed.bench.contestants import Contestant, NullBinder, Ours, Upstream
from testbed.bench.meter import SCHEDULER
from testbed.bench.outputs import check_file, kept, write_json
from testbed.bench.provenance import CAVEATS, provenance
from testbed.bench.report import NULL, OURS, UPSTREAM, share, times
from testbed.bench.scenario_objects import bench_node, node_name, priority_class
from testbed.bench.scenario_pods import default_pod, too_large
from testbed.bench.scenarios import ZONES
from testbed.bench.state_runs import Budget, Stage, Standing, State, Variant
from testbed.bench.world import World
from testbed.client import Object
from testbed.errors import TestbedError

# Pods of the usual size that a node has room for.
_SLOTS = 40
_MAKERS: dict[str, Callable[[World], Contestant]] = {
    OURS: Ours,
    UPSTREAM: Upstream,
    NULL: NullBinder,
}


def main(arguments: list[str]) -> int:
    """Run; return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error(f"--repeats {options.repeats}: at least one run is needed")
    standings: list[Standing] = []
    failure = None
    began = time.monotonic()
    try:
        check_file(options.out, "OUT")
        states = [STATES[name](options) for name in options.state or STATES]
        for line in kept({"OUT": options.out}):
            print(f"bench-states: {line}", file=sys.stderr)
        origin = provenance()

        def save(error: str | None = None) -> None:
            took = time.monotonic() - began
            found = as_json(standings, _settings(options), origin, took=took, error=error)
            write_json(options.out, found)

        try:
            _compete(states, options, standings, save)
        except (TestbedError, ValueError, OSError) as error:
            # What was measured before is worth as much as without the failure.
            failure = str(error)
            save(failure)
    except (TestbedError, ValueError, OSError) as error:
        failure = failure or str(error)
    if any(standing.turns or standing.failures for standing in standings):
        print("\n".join(("", *table(standings))))
        print(f"It took {(time.monotonic() - began) / 60:.1f} minutes.")
        print(*kept({"OUT": options.out}), sep="\n")
    if failure is not None:
        print(f"\nbench-states: {failure}", file=sys.stderr)
        return 1
    return 0 if all(standing.is_sound for standing in standings) else 1


def _compete(
    states: Sequence[State],
    options: argparse.Namespace,
    standings: list[Standing],
    save: Callable[[], None],
) -> None:
    """Run one state after the other; `standings` has what there is, also after an error."""
    budget = Budget(options.minutes * 60)
    bar = Bar(sys.stderr)
    for state in states:
        chosen = [CONTESTANTS[key] for key in options.only or CONTESTANTS]
        with World() as world:
            stage = Stage(state, world, bar.show)
            stage.fill()
            made = {n: _MAKERS[n](world) for n in chosen if n != NULL or state.has_null}
            found = stage.standings(made)
            standings += found
            stage.compete(made, budget.rounds(options.repeats), found)
        save()


# The states


def bound_state(options: argparse.Namespace) -> State:
    """Return a cluster with many pods in place."""
    nodes, bound, pods = options.nodes, options.bound_pods, options.pods
    _check_room(nodes, bound, pods)
    variant = Variant(
        f"{bound} bound", (_nodes(0, nodes), _in_place(0, bound, nodes), _waiting(pods))
    )
    return State("bound", (variant,), _names(pods))


def unschedulable_state(options: argparse.Namespace) -> State:
    """Return a cluster with and without pods that fit nowhere; others come when all were tried."""
    nodes, pods, stuck = options.nodes, options.pods, options.unschedulable
    init = nodes // 5
    _check_room(nodes, init, pods)
    without = Variant(
        "0 unschedulable",
        (_nodes(0, nodes), (priority_class("bench-high"),), _in_place(0, init, nodes)),
    )
    background = tuple(too_large(f"background-{number}", number) for number in range(stuck))
    full = Variant(f"{stuck} unschedulable", (background,), unschedulable=stuck)
    return State("unschedulable", (without, full), _names(pods), late=_waiting(pods))


def nodes_state(options: argparse.Namespace) -> State:
    """Return a cluster, and a larger one with as many pods per node in place."""
    few, many, pods = options.nodes, options.many_nodes, options.pods
    if many <= few:
        raise ValueError(f"--many-nodes {many}: it has to be more than --nodes, {few}")
    _check_room(few, few // 5, pods)
    small = Variant(f"{few} nodes", (_nodes(0, few), _in_place(0, few // 5, few), _waiting(pods)))
    more = _in_place(few // 5, many // 5, many - few, first_node=few)
    large = Variant(f"{many} nodes", (_nodes(few, many), more))
    return State("nodes", (small, large), _names(pods), has_null=True)


STATES: dict[str, Callable[[argparse.Namespace], State]] = {
    "bound": bound_state,
    "unschedulable": unschedulable_state,
    "nodes": nodes_state,
}


def _check_room(nodes: int, bound: int, pods: int) -> None:
    if nodes < 1 or pods < 1:
        raise ValueError(f"{nodes} nodes and {pods} pods: there has to be at least one of each")
    if bound + pods > nodes * _SLOTS:
        raise ValueError(
            f"{nodes} nodes have room for {nodes * _SLOTS} pods, not for {bound} in place and "
            f"{pods} more: take more nodes or fewer pods"
        )


def _nodes(first: int, end: int) -> tuple[Object, ...]:
    return tuple(bench_node(number, zones=ZONES) for number in range(first, end))


def _in_place(first: int, end: int, nodes: int, *, first_node: int = 0) -> tuple[Object, ...]:
    """Return pods that are bound when they are created, dealt round over so many nodes."""
    pods = tuple(default_pod(f"init-{number}", number) for number in range(first, end))
    for number, pod in enumerate(pods):
        pod["spec"]["nodeName"] = node_name(first_node + number % nodes)
    return pods


def _names(count: int) -> tuple[str, ...]:
    return tuple(f"pod-{number}" for number in range(count))


def _waiting(count: int) -> tuple[Object, ...]:
    return tuple(default_pod(name, number) for number, name in enumerate(_names(count)))


# What came of it


def table(standings: Sequence[Standing]) -> Iterator[str]:
    """Yield the lines of the table, and the ratios that are asked for."""
    yield (
        f"{'state':15}{'variant':22}{'scheduler':16}{'rounds':>6}{'pods/s':>8}{'CPU ms':>8}"
        f"{'api ms':>8}{'etcd ms':>8}{'MiB':>7}{'ready s':>9}{'first s':>9}"
    )
    for one in standings:
        if not one.turns:
            continue
        yield (
            f"{one.state:15}{one.variant:22}{one.contestant:16}{len(one.turns):6}"
            f"{one.median('pods_per_second'):8.0f}{one.cpu(SCHEDULER):8.2f}{one.cpu('api'):8.2f}"
            f"{one.cpu('etcd'):8.2f}{one.median('peak_rss_mib'):7.0f}{one.ready_seconds:9.2f}"
            f"{one.median('first_binding_seconds'):9.2f}"
        )
    yield ""
    for name, value in ratios(standings).items():
        yield f"{name}: {value}"
    yield ""
    for one in standings:
        for failure in one.failures:
            yield f"{one.state}, {one.variant}, {one.contestant}, gave up: {failure}"
    yield from CAVEATS


def ratios(standings: Sequence[Standing]) -> dict[str, str]:
    """Return what the states are measured for."""
    found: dict[str, str] = {}
    standings = [one for one in standings if one.turns]
    known = {(one.state, one.contestant): one for one in standings}
    ours, kube = known.get(("bound", OURS)), known.get(("bound", UPSTREAM))
    if ours and kube:
        figures: Mapping[str, Callable[[Standing], float]] = {
            "peak memory": lambda one: one.median("peak_rss_mib"),
            "start-up to ready": lambda one: one.ready_seconds,
            "start-up to first Binding": lambda one: one.median("first_binding_seconds"),
        }
        for what, of in figures.items():
            found[f"{ours.variant}, {what}, of kube-scheduler's"] = times(of(ours), of(kube))
    for state in ("unschedulable", "nodes"):
        for contestant in _MAKERS:
            pair = [s for s in standings if (s.state, s.contestant) == (state, contestant)]
            if len(pair) == 2:
                before, after = (one.median("pods_per_second") for one in pair)
                what = f"{pair[1].variant}, {contestant}, pods/s of those with {pair[0].variant}"
                found[what] = share(after, before)
    return found


def as_json(
    standings: Sequence[Standing],
    settings: dict[str, Any],
    origin: dict[str, Any],
    *,
    took: float,
    error: str | None = None,
) -> dict[str, Any]:
    """Return everything, single turns included, and what has put an end to it before its time."""
    return {
        **origin,
        "settings": settings,
        "took_seconds": round(took, 1),
        "error": error,
        "ratios": ratios(standings),
        "standings": [standing.as_json() for standing in standings if standing.turns],
        "failures": [
            {"state": one.state, "variant": one.variant, "scheduler": one.contestant, "what": what}
            for one in standings
            for what in one.failures
        ],
    }


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    return {key: value for key, value in vars(options).items() if key != "out"}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make bench-states", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--state", action="append", choices=list(STATES))
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--many-nodes", type=int, default=15_000)
    parser.add_argument("--bound-pods", type=int, default=30_000)
    parser.add_argument("--unschedulable", type=int, default=10_000)
    parser.add_argument("--pods", type=int, default=PODS, help="as many are placed")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", action="append", choices=list(CONTESTANTS))
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="no further round is begun that would end later"
    )
    parser.add_argument("--out", type=Path, help="write everything there as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
