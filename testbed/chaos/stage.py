"""All that runs in a chaos run: the bed, its nodes, two replicas, kube-scheduler, traffic."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from testbed import etcd
from testbed.bed import Bed
from testbed.chaos.archive import write_lines
from testbed.chaos.configuration import ConfigurationMount
from testbed.chaos.evidence import Passed, Sample
from testbed.chaos.history import History
from testbed.chaos.replica import Replica
from testbed.chaos.traffic import NAMESPACE, Traffic
from testbed.chaos.trimming import trim
from testbed.chaos.world import World
from testbed.client import Client
from testbed.installation import install
from testbed.layout import Layout
from testbed.options import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KWOK,
    SCHEDULER,
    BedOptions,
)
from testbed.proxy.journal import Journal
from testbed.proxy.server import FaultProxy
from testbed.sandbox import Sandbox
from testbed.waiting import eventually
from testbed.workload import NODES, create_all, make_nodes

SCHEDULER_NAME = "k8s-scheduler"
LEASE_SECONDS = 10.0
RENEW_SECONDS = 7.0
RETRY_SECONDS = 1.0
# What the daemon makes of these: 0.8 of the time between its deadline and the lease's end.
WRITE_SECONDS = 2.4
ZONES = 3
_VERIFIED_SHARE = 0.05
_METRICS_TRIES = 3

FLAGS = (
    "--leader-elect=true",
    "--leader-elect-resource-namespace=kube-system",
    "--leader-elect-resource-name=k8s-scheduler",
    f"--leader-elect-lease-duration={LEASE_SECONDS:g}s",
    f"--leader-elect-renew-deadline={RENEW_SECONDS:g}s",
    f"--leader-elect-retry-period={RETRY_SECONDS:g}s",
    f"--verify-cache={_VERIFIED_SHARE:g}",
)


def make_bed() -> Bed:
    """Return a bed with all components, an audit log, and objects that are legible in etcd."""
    return Bed(
        BedOptions(
            components=(CONTROLLER_MANAGER, KWOK, SCHEDULER),
            audit=True,
            extra_flags={API_SERVER: ["--storage-media-type=application/json"]},
        )
    )


class Stage:
    """What actions act on."""

    def __init__(self, bed: Bed, folder: Path, *, seed: int, nodes: int) -> None:
        self.bed = bed
        self.folder = folder
        self.journal = Journal(folder / "faults.jsonl")
        self.configuration = ConfigurationMount(folder / "config", scheduler=SCHEDULER_NAME)
        self.history = History(bed.url(ETCD), folder / "history.jsonl")
        self.nodes = make_nodes(nodes, prefix="node", zones=ZONES)
        self.traffic = Traffic(
            Client.from_kubeconfig(bed.kubeconfig),
            seed=seed,
            scheduler=SCHEDULER_NAME,
            pods_per_second=6.0,
            living=6 * nodes,
            zones=ZONES,
        )
        self.replicas: list[Replica] = []
        self.samples: list[Sample] = []
        self.metrics: dict[str, dict[str, float]] = {}
        self._seed = seed
        self._stack = contextlib.ExitStack()

    def set_up(self) -> None:
        """Bring everything to where the first fault may come."""
        self.history.start()
        install(self.bed)
        self._stack.enter_context(Sandbox(self.bed, prefix="unused"))
        self.bed.client.create(
            "/api/v1/namespaces",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        )
        create_all(self.bed.client, self.nodes)
        for name in ("replica-a", "replica-b"):
            proxy = FaultProxy(self.bed, seed=self._seed, name=name, journal=self.journal)
            self._stack.enter_context(proxy)
            replica = Replica(
                self.bed,
                name,
                proxy=proxy,
                config_file=self.configuration.file,
                flags=FLAGS,
                folder=self.folder,
            )
            self.replicas.append(replica)
            replica.start()
        for replica in self.replicas:
            replica.wait_ready()
        eventually(self.leader, 4 * LEASE_SECONDS, "one of the replicas leads")
        self.traffic.start()

    # Looking

    def leader(self) -> Replica | None:
        """Return the replica that leads, by its own word."""
        return next((replica for replica in self.replicas if replica.leads()), None)

    def look(self) -> None:
        """Note memory and files of every replica, and restart those that have ended."""
        for replica in self.replicas:
            if replica.collect():
                replica.start()
            elif (sample := replica.sample()) is not None:
                self.samples.append(sample)

    def note_metrics(self) -> None:
        """Note what the living replicas count; the auditor wants to know of each."""
        for replica in self.replicas:
            for _ in range(_METRICS_TRIES):
                if page := replica.metrics():
                    self.metrics[replica.process_name] = page
                    break
                time.sleep(1)  # one answer that is late is no violation

    def waiting_pods(self) -> list[str]:
        """Return the pods of ours that are not bound though a node would take them."""
        world = World()
        for kind, path in (("minions", NODES), ("pods", "/api/v1/pods")):
            for item in self.bed.client.list(path):
                seen = trim(f"/registry/{kind}/", item)
                if seen is not None:
                    world.put(seen)
        return [
            pod.name
            for pod in world.pods.values()
            if pod.scheduler == SCHEDULER_NAME
            and not pod.node
            and not pod.leaving
            and world.fits_somewhere(pod)
        ]

    def compact(self) -> int:
        """Forget history, as far as the auditor has read it; return the revision."""
        revision = self.history.revision
        with Client(self.bed.url(ETCD)) as client:
            etcd.compact(client, revision)
        return revision

    # The end

    def tear_down(self) -> None:
        """Stop what is ours, and put everything that was written into the folder."""
        self.traffic.stop()
        time.sleep(1)  # what was written last is still on its way to the history
        self.history.stop()
        self._stack.close()
        self.journal.close()
        layout = Layout(self.bed.state_dir)
        shutil.copy(layout.audit_log, self.folder / "audit.log")
        shutil.copytree(layout.log("x").parent, self.folder / "log", dirs_exist_ok=True)
        write_lines(self.folder / "passed.jsonl", self._passed())
        write_lines(self.folder / "samples.jsonl", self.samples)
        ends = [end for replica in self.replicas for end in replica.ends]
        write_lines(self.folder / "ends.jsonl", ends)
        write_lines(self.folder / "configurations.jsonl", self.configuration.written)
        write_lines(self.folder / "metrics.json", [self.metrics])

    def _passed(self) -> Iterator[Passed]:
        for entry in self.journal.bindings():
            # /api/v1/namespaces/NAMESPACE/pods/NAME/binding
            parts = entry.target.split("/")
            yield Passed(
                at=entry.at,
                ended_at=entry.ended_at,
                replica=entry.through,
                namespace=parts[4],
                name=parts[6],
                status=entry.upstream_status,
            )
