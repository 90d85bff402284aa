"""etcd is put back to an older state under load; the daemon is not told.

The cluster is full when that happens: of pods that are ghosts afterwards, in the place of pods that
come back. Whoever does not know of the first has no room for anything, and whoever does not know of
the others overfills their nodes.
"""

import logging
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from testbed.bed import Bed
from testbed.binaries import find_tools
from testbed.daemon import Daemon
from testbed.layout import Layout
from testbed.options import API_SERVER, ETCD, BedOptions
from testbed.ports import choose_ports
from testbed.sandbox import Sandbox
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import SCHEDULER, bound, no_node_is_overfilled, running, wait_bound

logger = logging.getLogger(__name__)

NODES, CPU = 5, 8
ELECTED = (
    "--leader-elect=true",
    # Longer than etcd is away: whoever has lost its Lease by then starts with caches of its own.
    "--leader-elect-lease-duration=90s",
    "--leader-elect-renew-deadline=80s",
    "--leader-elect-retry-period=2s",
)
ALONE = ("--leader-elect=false",)
# One case with every `make test`; the others with `make restore-check`.
CASES = (
    ("alone", "elected", "api-server-later", "leases-elsewhere")
    if os.environ.get("RESTORE_CHECK")
    else ("alone",)
)
# What must hold on a quiet machine, and what a busy one may add.
SECONDS, NOISE_SECONDS = 10.0, 20.0


@contextmanager
def another_etcd(folder: Path) -> Iterator[str]:
    """Run a second etcd; yields its address."""
    client, peer = (f"http://127.0.0.1:{port}" for port in choose_ports(2, taken=set()))
    program = find_tools((ETCD,)).binaries[ETCD].path
    process = subprocess.Popen(
        [
            str(program),
            f"--data-dir={folder}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=fatal",
        ]
    )
    try:
        yield client
    finally:
        process.terminate()
        process.wait(timeout=20)


class Backup:
    """The data of a bed's etcd, kept at some moment."""

    def __init__(self, bed: Bed, folder: Path) -> None:
        self._bed, self._folder = bed, folder
        self._data = Layout(bed.state_dir).etcd_data

    def take(self) -> None:
        self._bed.kill(ETCD)
        shutil.copytree(self._data, self._folder)
        self._bed.start(ETCD)

    def restore(self) -> None:
        """Put it back."""
        self._bed.kill(ETCD)
        shutil.rmtree(self._data)
        shutil.copytree(self._folder, self._data)
        self._bed.start(ETCD)


def restore(bed: Bed, backup: Backup, daemon: Daemon, *, api_server_later: bool) -> None:
    """Put etcd back. The API server has to be restarted, or it serves what it remembers."""
    if not api_server_later:
        bed.kill(API_SERVER)
    backup.restore()
    if api_server_later:
        # Lists still show the ghosts, but the Lease is read from etcd.
        noticed = 'k8s_scheduler_storage_set_back_total{source="lease"}'
        eventually(lambda: daemon.metrics().get(noticed), 20, "the Lease has told of it")
        bed.kill(API_SERVER)
    bed.start(API_SERVER)


def pods(prefix: str, count: int):
    return [
        make_pod(f"{prefix}-{i}", cpu="1", memory="64Mi", scheduler_name=SCHEDULER)
        for i in range(count)
    ]


@pytest.mark.parametrize("case", CASES)
def test_the_daemon_follows_etcd_back_and_fills_what_is_free_then(case, tmp_path):
    with ExitStack() as around:
        extra = {}
        if case == "leases-elsewhere":
            leases = around.enter_context(another_etcd(tmp_path / "leases"))
            override = f"--etcd-servers-overrides=coordination.k8s.io/leases#{leases}"
            extra = {API_SERVER: (override,)}
        options = BedOptions(components=(), audit=True, extra_flags=extra)
        with Bed(options) as bed, Sandbox(bed) as sandbox:
            flags = ALONE if case == "alone" else ELECTED
            with running(bed, flags=flags) as daemon:
                follow(bed, sandbox, daemon, tmp_path / "backup", case)


def follow(bed, sandbox, daemon, folder, case):
    sandbox.create_nodes(make_node(f"n{i}", cpu=str(CPU), memory="32Gi") for i in range(NODES))
    sandbox.create_pods(pods("old", 20))
    wait_bound(sandbox, 20)
    backup = Backup(bed, folder)
    backup.take()
    # In their place come others, and the rest is filled as well.
    for i in range(10):
        sandbox.client.delete(f"{sandbox.path}/pods/old-{i}", grace_period_seconds=0)
    sandbox.create_pods(pods("ghost", 30))
    wait_bound(sandbox, NODES * CPU)
    sandbox.create_pods(pods("waiting-ghost", 5))
    restore(bed, backup, daemon, api_server_later=case == "api-server-later")
    answered = time.monotonic()
    assert len(sandbox.pods()) == 20
    sandbox.create_pods(pods("new", 30))
    eventually(
        lambda: len(bound(sandbox)) == NODES * CPU,
        SECONDS + NOISE_SECONDS,
        "all room is filled",
    )
    seconds = time.monotonic() - answered
    logger.info("filled %.1f s after the restored server answered", seconds)
    no_node_is_overfilled(sandbox, cpu_per_node=CPU, cpu_per_pod=1)
    assert len(sandbox.pods()) == 50
    metrics = daemon.metrics()
    noticed = {k: v for k, v in metrics.items() if "storage_set_back_total" in k and v}
    assert noticed
    logger.info("noticed: %s", noticed)
    # A room that is given back is used again: nothing of the history before is counted.
    freed = next(iter(bound(sandbox)))
    sandbox.client.delete(f"{sandbox.path}/pods/{freed}", grace_period_seconds=0)
    eventually(lambda: len(bound(sandbox)) == NODES * CPU, 15, "the room is used again")
    no_node_is_overfilled(sandbox, cpu_per_node=CPU, cpu_per_pod=1)
    done = [
        entry.name
        for entry in bed.audit_entries()
        if entry.subresource == "binding" and entry.status in (200, 201)
    ]
    assert {name: done.count(name) for name in done if done.count(name) > 1} == {}
