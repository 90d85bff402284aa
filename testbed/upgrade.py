"""`make upgrade-check FROM=rev`: two versions that take over from each other, under load.

Another revision of this repository is installed beside this one. While pods come in, the lead goes
from the old version to the new one (an upgrade) and back (a rollback), by SIGTERM and by SIGKILL
each. Room is scarce, so a leader that did not know what the last one bound would overfill a node.
Exit code 0 if every pod is bound, by one Binding, to a node with room for it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from testbed.audit import AuditEntry
from testbed.bed import Bed
from testbed.client import Object
from testbed.daemon import PROGRAM, Daemon
from testbed.errors import TestbedError
from testbed.options import CONTROLLER_MANAGER, BedOptions
from testbed.sandbox import Sandbox
from testbed.takeover.replicas import Times, take_over, wait_for_leader
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod

SCHEDULER = "k8s-scheduler"
NODES, SLOTS = 30, 16
PODS_PER_PHASE = 90
_MILLI_CPU = 500
_TIMES = Times(lease_seconds=6.0, renew_seconds=4.0, retry_seconds=1.0)
_LIMIT_SECONDS = 60.0
# Pods come for longer than a lease takes to run out.
_PAUSE_SECONDS = 0.12
_INSTALL_SECONDS = 300.0
_ROOT = Path(__file__).parent.parent
# Who leads next, and whether the one before is killed: upgrades and rollbacks, gentle and not.
HANDOVERS = (("new", False), ("old", True), ("new", True), ("old", False))


@dataclass(frozen=True, slots=True)
class Version:
    """A revision, and the program that it installs."""

    name: str
    program: Path


def main(arguments: list[str]) -> int:
    """Run it; return the exit code."""
    parser = argparse.ArgumentParser(prog="testbed.upgrade", description=__doc__)
    parser.add_argument("--from", dest="revision", required=True, help="the other revision")
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="upgrade-") as folder:
            old = install(options.revision, Path(folder))
            versions = {"old": old, "new": Version("new", PROGRAM)}
            with Bed(BedOptions(components=(CONTROLLER_MANAGER,), audit=True)) as bed:
                problems = _hand_over(bed, versions)
    except (TestbedError, AssertionError) as error:
        problems = [str(error)]
    for problem in problems:
        print(f"upgrade-check: {problem}", file=sys.stderr)
    print("nothing was lost" if not problems else f"{len(problems)} problems", flush=True)
    return 1 if problems else 0


def install(revision: str, folder: Path) -> Version:
    """Install another revision of this repository into a folder."""
    archive = _run(["git", "archive", "--format=tar", revision], cwd=_ROOT)
    _run(["tar", "-x", "-C", str(folder)], cwd=folder, stdin=archive)
    print(f"installing {revision} ...", flush=True)
    _run(["make", "install", f"PYTHON={sys.executable}"], cwd=folder)
    return Version("old", folder / ".venv" / "bin" / "k8s-scheduler")


def _run(command: Sequence[str], *, cwd: Path, stdin: bytes | None = None) -> bytes:
    done = subprocess.run(
        command,
        cwd=cwd,
        input=stdin,
        env={key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"},
        capture_output=True,
        check=False,
        timeout=_INSTALL_SECONDS,
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-5:]
        raise TestbedError(f"{' '.join(command)}: exit code {done.returncode}: {' '.join(said)}")
    return done.stdout


def _hand_over(bed: Bed, versions: dict[str, Version]) -> list[str]:
    with Sandbox(bed) as sandbox:
        cpu = str(SLOTS * _MILLI_CPU // 1000)
        sandbox.create_nodes([make_node(f"n{number}", cpu=cpu) for number in range(NODES)])
        leader = _start(bed, versions["old"], 0)
        wait_for_leader(leader)
        _load(sandbox, 0)
        for number, (name, crash) in enumerate(HANDOVERS, start=1):
            standby = _start(bed, versions[name], number)
            with ThreadPoolExecutor(max_workers=1, thread_name_prefix="load") as pool:
                coming = pool.submit(_load, sandbox, number)
                found = take_over(leader, standby, crash=crash, limit_seconds=_LIMIT_SECONDS)
                coming.result()
            how = "SIGKILL" if crash else "SIGTERM"
            print(f"{how}: {name} binds after {found.first_bind:.1f} s", flush=True)
            leader = standby
        wanted = (len(HANDOVERS) + 1) * PODS_PER_PHASE
        eventually(
            lambda: sum(bool(p["spec"].get("nodeName")) for p in sandbox.pods().values()) == wanted,
            _LIMIT_SECONDS,
            "every pod is bound",
        )
        pods = list(sandbox.pods().values())
        code = leader.stop()
        problems = [] if code == 0 else [f"the last leader ended with {code}"]
        return [*problems, *judge(pods, bed.audit_entries())]


def _start(bed: Bed, version: Version, number: int) -> Daemon:
    return Daemon(
        bed,
        name=f"{version.name}-{number}",
        flags=_TIMES.flags(),
        program=(str(version.program),),
    ).start()


def _load(sandbox: Sandbox, phase: int) -> None:
    """Let more pods come, one after the other; together they nearly fill the nodes."""
    for number in range(PODS_PER_PHASE):
        name, cpu = f"p{phase}-{number}", f"{_MILLI_CPU}m"
        sandbox.create_pods([make_pod(name, cpu=cpu, memory=None, scheduler_name=SCHEDULER)])
        time.sleep(_PAUSE_SECONDS)


def judge(pods: Iterable[Object], entries: Iterable[AuditEntry]) -> list[str]:
    """Return what is wrong: pods without a node or with two Bindings, nodes with too many."""
    pods = list(pods)
    problems = [
        f"{pod['metadata']['name']} has no node" for pod in pods if not pod["spec"].get("nodeName")
    ]
    bindings = Counter(entry.target_uid for entry in entries if entry.is_successful_binding)
    for pod in pods:
        times = bindings[pod["metadata"]["uid"]]
        if pod["spec"].get("nodeName") and times != 1:
            problems.append(f"{pod['metadata']['name']} was bound {times} times")
    held = Counter(pod["spec"].get("nodeName", "") for pod in pods)
    problems += [
        f"{node} has {count} pods and room for {SLOTS}"
        for node, count in sorted(held.items())
        if node and count > SLOTS
    ]
    return problems


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
