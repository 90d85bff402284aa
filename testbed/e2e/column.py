"""One column of the table: a bed of its own, one scheduler that serves `default-scheduler`.

    bed up ──► nodes ──► scheduler ──► suite ──► results and logs kept ──► bed gone

The suite is a program of the bed, so nothing of it outlives the bed. Its own limit ends it with
a report; a suite that does not keep to that is ended with the bed, and what it told counts.
"""

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from testbed.bed import Bed
from testbed.binaries import Toolset, find_tools
from testbed.client import Object
from testbed.component import tail
from testbed.daemon import Daemon
from testbed.e2e.suite import Choice, Spec, command, read_results, select
from testbed.errors import TestbedError
from testbed.installation import shipped_configuration
from testbed.options import CONTROLLER_MANAGER, KWOK, SCHEDULER, BedOptions
from testbed.workload import create_all, make_binding, make_node, make_pod, object_path

STAGES = Path(__file__).with_name("stages.yaml")
NODES = 4
ZONES = 2
SERVED = "default-scheduler"
OURS = "k8s-scheduler"
UPSTREAM = SCHEDULER

_SUITE = "e2e"
_AGENTS = ("kube-proxy", "fluentd-elasticsearch", "node-problem-detector")
_LOOK_SECONDS = 1.0
# Ginkgo lets a spec that is out of time clean up behind it.
_GRACE_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class Column:
    """What the specs said about one scheduler; `in_time` if none was cut short or left out."""

    scheduler: str
    specs: tuple[Spec, ...]
    seconds: float
    in_time: bool = True


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be run, and where logs and reports go."""

    program: Path
    choice: Choice
    chosen: Sequence[str]
    folder: Path


def run_column(
    scheduler: str, task: Task, *, on_spec: Callable[[Spec, int], None], stop: threading.Event
) -> Column:
    """Run the chosen specs with one scheduler, to the end or until told to stop.

    `on_spec` is told of each spec as it ends, and how many have.
    """
    folder = task.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    extra = (SCHEDULER,) if scheduler == UPSTREAM else ()
    started = time.monotonic()
    options = BedOptions(components=(CONTROLLER_MANAGER, KWOK, *extra))
    with Bed(options, find=lambda components: _with_own_stages(components, folder)) as bed:
        try:
            _furnish(bed)
            if scheduler == OURS:
                Daemon(bed, name=OURS, configuration=configuration()).start()
            began = time.monotonic()
            specs = _run_suite(bed, task, on_spec=on_spec, stop=stop)
            in_time = time.monotonic() - began < task.choice.limit_seconds
            if not specs:
                log = bed.log(_SUITE)
                raise TestbedError(f"no spec ran with {scheduler}; the suite said:\n{tail(log)}")
        finally:
            _keep_logs(bed, folder)
    return Column(scheduler, tuple(specs), time.monotonic() - started, in_time)


def make_cluster() -> list[Object]:
    """Return the nodes: equal ones, dealt over the zones, with what the specs ask nodes for."""
    nodes = []
    for index in range(NODES):
        node = make_node(
            f"node-{index}",
            zone=f"zone-{index % ZONES}",
            extended_resources={"ephemeral-storage": "100Gi"},
        )
        # One spec uses the same port on 127.0.0.1 and on the node's address.
        for address in node["status"]["addresses"]:
            if address["type"] == "InternalIP":
                address["address"] = f"127.0.1.{index + 1}"
        nodes.append(node)
    return nodes


def make_agents(node_name: str) -> list[Object]:
    """Return the pods that the suite expects on every node.

    Where one is missing, ten of the specs wait for it, a minute each.
    """
    return [
        make_pod(
            f"{agent}-{node_name}",
            namespace="kube-system",
            cpu=None,
            memory=None,
            scheduler_name="nobody",  # they are bound here
            tolerations=[{"operator": "Exists"}],
            priority_class="system-node-critical",
        )
        for agent in _AGENTS
    ]


def configuration() -> str:
    """Return the shipped configuration, with kube-scheduler's name in it."""
    config = yaml.safe_load(shipped_configuration())
    (profile,) = config["profiles"]
    profile["schedulerName"] = SERVED
    return yaml.safe_dump(config, sort_keys=False)


def _with_own_stages(components: Collection[str], folder: Path) -> Toolset:
    """Find the programs of a bed; kwok plays our stages besides its own."""
    tools = find_tools(components)
    if tools.stages is None:
        raise TestbedError("a bed for the suite needs kwok")
    stages = folder / "stages.yaml"
    parts = [path.read_text(encoding="utf-8") for path in (tools.stages, STAGES)]
    stages.write_text("\n---\n".join(parts), encoding="utf-8")
    return replace(tools, stages=stages)


def _furnish(bed: Bed) -> None:
    """Create the nodes and what runs on every node."""
    for node in create_all(bed.client, make_cluster()):
        name = node["metadata"]["name"]
        for pod in create_all(bed.client, make_agents(name)):
            bed.client.create(f"{object_path(pod)}/binding", make_binding(pod, name))


def _run_suite(
    bed: Bed, task: Task, *, on_spec: Callable[[Spec, int], None], stop: threading.Event
) -> list[Spec]:
    """Run the suite to its end, or until it has had its time and more."""
    results, limit_seconds = task.folder / "results.jsonl", task.choice.limit_seconds
    bed.add_program(
        _SUITE,
        command(
            task.program,
            task.choice,
            kubeconfig=bed.kubeconfig,
            results=results,
            reports=task.folder,
        ),
    )
    bed.start_program(_SUITE)
    deadline = time.monotonic() + limit_seconds + _GRACE_SECONDS
    specs: list[Spec] = []
    ended = False
    while not ended and not stop.is_set() and time.monotonic() < deadline:
        try:
            bed.wait_program(_SUITE, timeout_seconds=_LOOK_SECONDS)
            ended = True
        except subprocess.TimeoutExpired:
            pass
        seen, specs = len(specs), select(read_results(_whole_lines(results)), task.chosen)
        for number, spec in enumerate(specs[seen:], start=seen + 1):
            on_spec(spec, number)
    return specs


def _whole_lines(path: Path) -> list[str]:
    """Return the lines that are written to their end."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return text[: text.rfind("\n") + 1].splitlines()


def _keep_logs(bed: Bed, folder: Path) -> None:
    for log in sorted(bed.log(_SUITE).parent.glob("*.log")):
        shutil.copy(log, folder)
