"""The command line of the test bed: build, up, status, down.

There is one bed that outlives its command; `up` makes it, `down` ends it, and both first clear
away what dead owners have left. Exit codes: 0 as asked, 1 not, 2 misuse (argparse), 130 Ctrl-C.
"""

import argparse
import contextlib
import signal
import sys
from pathlib import Path
from types import FrameType

from testbed.bed import DETACHED, Bed
from testbed.binaries import COMPONENTS, find_tools
from testbed.client import Client
from testbed.errors import TestbedError
from testbed.options import BedOptions, parse_components
from testbed.registry import Record, Registry
from testbed.status import inspect, plan_of, table
from testbed.teardown import take_down
from testbed.workload import create_all, make_nodes

_DESCRIPTION = """\
A real Kubernetes control plane as plain processes on loopback, for tests and demos.
It needs no container, no root and no kubectl.
"""
_EPILOG = """\
environment:
  KUBEBUILDER_ASSETS            folder of ready-made binaries, used before PATH
  K8S_SCHEDULER_READY_BINARIES  0: ignore ready-made binaries, use the pinned build
  K8S_SCHEDULER_CACHE           where builds are kept (default: ~/.cache/k8s-scheduler)
  TMPDIR                        where a running bed keeps its files
"""


def main(arguments: list[str]) -> int:
    """Run one command; return the exit code."""
    chosen = _parser().parse_args(arguments)
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number in previous:
        signal.signal(number, _as_interrupt)
    try:
        code: int = chosen.command(chosen)
    except TestbedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("testbed: interrupted; everything is stopped", file=sys.stderr)
        return 130
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return code


def _as_interrupt(_number: int, _frame: FrameType | None) -> None:
    """Make SIGTERM and SIGHUP unwind like Ctrl-C, so that a bed being started is closed."""
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m testbed",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    build = commands.add_parser(
        "build",
        help="build what is missing, start nothing",
        description="Build the control plane and kwok once; later runs find them in the cache. "
        "The first time takes about 8 to 10 minutes on two cores.",
    )
    build.set_defaults(command=_build)
    _add_up(commands.add_parser("up", help="start a bed", description=_up.__doc__))
    status = commands.add_parser(
        "status",
        help="show what runs",
        description="Show pid, memory, port and health of each component. "
        "Exit code 0 if a bed is up and all is well, 1 if not.",
    )
    status.set_defaults(command=_status)
    down = commands.add_parser(
        "down",
        help="stop the bed, remove its files",
        description="Stop the bed that `up` started, and whatever beds of dead processes are "
        "left. Beds of living processes (running tests) are not touched.",
    )
    down.set_defaults(command=_down)
    return parser


def _add_up(up: argparse.ArgumentParser) -> None:
    up.add_argument(
        "--nodes", type=int, default=0, metavar="N", help="create N simulated nodes (default: 0)"
    )
    up.add_argument(
        "--with",
        dest="components",
        type=_components,
        default=parse_components("kcm,kwok"),
        metavar="LIST",
        help="components besides etcd and kube-apiserver: kcm (kube-controller-manager), kwok, "
        "kube-scheduler, separated by commas (default: kcm,kwok; '' for none)",
    )
    up.add_argument("--audit", action="store_true", help="have the API server audit bindings")
    up.add_argument(
        "--detach",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="leave the bed running; with --no-detach it ends with Ctrl-C",
    )
    up.set_defaults(command=_up)


def _components(text: str) -> tuple[str, ...]:
    try:
        return parse_components(text)
    except TestbedError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _build(_chosen: argparse.Namespace) -> int:
    tools = find_tools(COMPONENTS)
    for component, binary in tools.binaries.items():
        print(f"{component:<24} {binary.version:<10} {binary.path}")
    return 0


def _up(chosen: argparse.Namespace) -> int:
    """Start a control plane on free loopback ports and print how to reach it."""
    registry = Registry()
    running = _running(registry)
    options = BedOptions(components=chosen.components, audit=chosen.audit)
    if running is not None:
        return _runs_already(running, options)
    name = DETACHED if chosen.detach else None
    with Bed(options, name=name, detachable=chosen.detach, registry=registry) as bed:
        create_all(bed.client, make_nodes(chosen.nodes))
        _print_access(str(bed.kubeconfig))
        if chosen.detach:
            print("stop it with: python -m testbed down", file=sys.stderr)
            bed.detach()
        else:
            print("stop it with Ctrl-C", file=sys.stderr)
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    return 0


def _running(registry: Registry) -> Record | None:
    """Return the detached bed if it runs; clear away what is left of one that does not."""
    registry.discard_orphans()
    record = registry.load(DETACHED)
    if record is not None and record.owner is None and not record.is_running():
        registry.discard(record)  # all its processes were ended by somebody else
        return None
    return record


def _runs_already(record: Record, options: BedOptions) -> int:
    if record.owner is not None:
        raise TestbedError(f"another `up` (pid {record.owner.pid}) is starting a bed right now")
    there = plan_of(record).options.all_components
    print(f"testbed: runs already, with {', '.join(there)}", file=sys.stderr)
    _print_access(str(plan_of(record).layout.admin_kubeconfig))
    if missing := [name for name in options.all_components if name not in there]:
        raise TestbedError(
            f"it has no {', '.join(missing)}; `python -m testbed down` first, then `up` again"
        )
    return 0


def _print_access(kubeconfig: str) -> None:
    with Client.from_kubeconfig(Path(kubeconfig)) as client:
        version = client.get("/version")["gitVersion"]
    print(f"Kubernetes {version} is up; kubeconfig: {kubeconfig}")
    print(f"export KUBECONFIG={kubeconfig}")


def _status(_chosen: argparse.Namespace) -> int:
    records = Registry().load_all()
    if not records:
        print("no bed is up; start one with: python -m testbed up")
    well = bool(records)
    for record in records:
        lines = inspect(record)
        well = well and not any(line.trouble for line in lines)
        print(f"bed {record.name} ({_owner(record)}), files in {record.state_dir}")
        print("\n".join(table(lines)))
    return 0 if well else 1


def _owner(record: Record) -> str:
    if record.owner is None:
        return "detached"
    if record.is_orphan():
        return f"left by pid {record.owner.pid}, which is gone; `down` removes it"
    return f"owned by pid {record.owner.pid}"


def _down(_chosen: argparse.Namespace) -> int:
    registry = Registry()
    for orphan in registry.discard_orphans():
        print(f"removed bed {orphan.name}, left by a process that is gone")
    record = registry.load(DETACHED)
    if record is None:
        print("no bed is up")
    elif record.owner is not None:
        raise TestbedError(f"`up` (pid {record.owner.pid}) is still starting it; try again")
    else:
        take_down(record, registry=registry)
        print("stopped; no process and no file is left")
    return 0
