"""`make upgrade-check FROM=rev`: two versions that take over from each other, under load.

Another revision of this repository is installed beside this one. While pods come in, the lead goes
from the old version to the new one (an upgrade) and back (a rollback), by SIGTERM and by SIGKILL
each. Each time

    the standby, of the other version, is ready ─▶ pods come in bursts, the leader binds them
        ─▶ in the middle of a burst the leader is told to end, or killed ─▶ bursts go on
        ─▶ the standby leads and binds ─▶ the node comes that the last pods were waiting for

Exit code 0 if every pod is bound, by one Binding, to a node with room for it, by a process whose
turn it was (`upgrade_judge`), and no process has failed.
"""

import argparse
import base64
import filecmp
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

from testbed.bed import Bed
from testbed.daemon import PROGRAM, Daemon
from testbed.errors import TestbedError
from testbed.options import CONTROLLER_MANAGER, BedOptions
from testbed.sandbox import Sandbox
from testbed.takeover.replicas import Times, take_over, wait_for_leader
from testbed.upgrade_judge import Account, Phase, figures, judge
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod

SCHEDULER = "k8s-scheduler"
# Of each phase: its pods fill its nodes to the last place.
NODES, SLOTS = 10, 9
# How many pods come at once, and in which of these bursts the leader ends: in the large one.
BURSTS = (*(6 * [5]), 30, *(6 * [5]))
SIGNAL_BURST = 6
_AT_ONCE = 8
_MILLI_CPU = 500
TIMES = Times(lease_seconds=6.0, renew_seconds=4.0, retry_seconds=1.0)
_LIMIT_SECONDS = 90.0
PAUSE_SECONDS = 1.1
_INSTALL_SECONDS = 300.0
_ROOT = Path(__file__).parent.parent
# Who leads next, and whether the one before is killed: upgrades and rollbacks, gentle and not.
HANDOVERS = (("new", False), ("old", True), ("new", True), ("old", False))


@dataclass(frozen=True, slots=True)
class Version:
    """A revision: the program that it installs, and the configuration that it ships."""

    name: str
    program: Path
    configuration: str


def main(arguments: list[str]) -> int:
    """Run it; return the exit code."""
    parser = argparse.ArgumentParser(prog="testbed.upgrade", description=__doc__)
    parser.add_argument("--from", dest="revision", required=True, help="the other revision")
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="upgrade-") as folder:
            old = install(options.revision, Path(folder))
            versions = {"old": old, "new": Version("new", PROGRAM, _shipped(_ROOT))}
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
    if are_the_same(folder / SCHEDULER.replace("-", "_"), _ROOT / SCHEDULER.replace("-", "_")):
        raise TestbedError(f"{revision} is this version: there is nothing to compare")
    print(f"installing {revision} ...", flush=True)
    _run(["make", "install", f"PYTHON={sys.executable}"], cwd=folder)
    python = str(folder / ".venv" / "bin" / "python")
    ask = "import k8s_scheduler; print(k8s_scheduler.__file__)"
    # Away from the folder, whose own package would be found there in any case.
    found = Path(_run([python, "-c", ask], cwd=Path("/")).decode().strip())
    if not found.resolve().is_relative_to(folder.resolve()):
        raise TestbedError(f"the program of {revision} would run {found}")
    return Version("old", folder / ".venv" / "bin" / "k8s-scheduler", _shipped(folder))


def are_the_same(one: Path, other: Path) -> bool:
    """Return whether two folders hold the same Python files."""
    names = [{file.relative_to(folder) for file in folder.rglob("*.py")} for folder in (one, other)]
    if names[0] != names[1]:
        return False
    return all(filecmp.cmp(one / name, other / name, shallow=False) for name in names[0])


def _shipped(root: Path) -> str:
    """Return the configuration that a tree's manifests bring."""
    text = (root / "manifests" / "config.yaml").read_text(encoding="utf-8")
    (config_map,) = (document for document in yaml.safe_load_all(text) if document)
    return str(config_map["data"]["config.yaml"])


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
        leader = _start(bed, versions["old"], 0)
        daemons = [leader]
        wait_for_leader(leader)
        phases: list[Phase] = []
        for number, (name, crash) in enumerate(HANDOVERS, start=1):
            load = Load(sandbox, number)
            load.make_room(NODES - 1)
            standby = _start(bed, versions[name], number)
            daemons.append(standby)
            phases.append(_change_leaders(load, leader, standby, crash=crash))
            load.wait_until_bound(len(load.names))
            leader = standby
        pods = list(sandbox.pods().values())
        code = leader.stop()
        problems = [] if code == 0 else [f"{leader.name} ended with {code}"]
        problems += [f"{each.name} has failed: {each.log}" for each in daemons if _failed(each)]
        processes = {token_id(each.folder / "kubeconfig"): each.name for each in daemons}
        account = Account(bed.audit_entries(), processes, pods)
        for phase in phases:
            print(f"phase {phase.number}: {figures(account, phase)}", flush=True)
        return [*problems, *judge(pods, account, phases, slots=SLOTS)]


def _change_leaders(load: "Load", leader: Daemon, standby: Daemon, *, crash: bool) -> Phase:
    """Let the standby take over in the middle of the load."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="load") as pool:
        coming = pool.submit(load.run)
        if not load.due.wait(_LIMIT_SECONDS):
            coming.result(timeout=1.0)
        asked, now = load.asked, datetime.now(UTC)
        found = take_over(leader, standby, crash=crash, limit_seconds=_LIMIT_SECONDS)
        load.make_room(1)
        coming.result()
    print(
        f"{'SIGKILL' if crash else 'SIGTERM'}: {standby.name} leads after {found.acquired:.1f} s, "
        f"binds after {found.first_bind:.1f} s",
        flush=True,
    )
    return Phase(
        number=load.phase,
        leader=leader.name,
        successor=standby.name,
        pods=load.names,
        signalled_at=now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        asked_by_then=asked,
    )


class Load:
    """The pods and nodes of one phase; these pods go to these nodes, and no other pod does."""

    def __init__(self, sandbox: Sandbox, phase: int) -> None:
        self.phase = phase
        self.names = [f"p{phase}-{number}" for number in range(NODES * SLOTS)]
        self.asked = 0
        # Set once the burst has begun in which the leader ends.
        self.due = threading.Event()
        self._sandbox = sandbox
        self._labels = {"phase": str(phase)}
        self._nodes = 0

    def make_room(self, nodes: int) -> None:
        """Add nodes to the phase."""
        names = [f"n{self.phase}-{self._nodes + number}" for number in range(nodes)]
        cpu = f"{SLOTS * _MILLI_CPU}m"
        self._sandbox.create_nodes(
            [make_node(each, cpu=cpu, labels=self._labels) for each in names]
        )
        self._nodes += nodes

    def run(self) -> None:
        """Let the pods come, burst by burst."""
        for number, size in enumerate(BURSTS):
            burst = self.names[self.asked : self.asked + size]
            if number == SIGNAL_BURST:
                # Nearly all that came: the leader is at work when it ends.
                self.wait_until_bound(self.asked - size // 4)
            self.asked += size
            self._create(burst, is_signal=number == SIGNAL_BURST)
            time.sleep(PAUSE_SECONDS)

    def _create(self, names: Sequence[str], *, is_signal: bool) -> None:
        with ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="burst") as pool:
            coming = [pool.submit(self._sandbox.create_pods, [self._pod(name)]) for name in names]
            for number, created in enumerate(as_completed(coming)):
                created.result()
                if is_signal and number == len(names) // 2:
                    self.due.set()

    def wait_until_bound(self, count: int) -> None:
        """Wait until so many of the pods have a node."""
        message = f"{count} pods of phase {self.phase} are bound"
        eventually(lambda: self._count_bound() >= count, _LIMIT_SECONDS, message)

    def _count_bound(self) -> int:
        pods = self._sandbox.pods()
        return sum(bool(pods[name]["spec"].get("nodeName")) for name in self.names if name in pods)

    def _pod(self, name: str) -> dict[str, object]:
        return make_pod(
            name,
            cpu=f"{_MILLI_CPU}m",
            memory=None,
            scheduler_name=SCHEDULER,
            node_selector=self._labels,
        )


def _start(bed: Bed, version: Version, number: int) -> Daemon:
    return Daemon(
        bed,
        name=f"{version.name}-{number}",
        configuration=version.configuration,
        flags=TIMES.flags(),
        program=(str(version.program),),
    ).start()


def _failed(daemon: Daemon) -> bool:
    text = daemon.log.read_text(encoding="utf-8")
    return "Traceback" in text or "missing permission" in text


def token_id(kubeconfig: Path) -> str:
    """Return the id of the token in a kubeconfig, as the API server's audit log shows it."""
    (user,) = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["users"]
    payload = user["user"]["token"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
