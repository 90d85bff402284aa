"""Who is measured: this scheduler, kube-scheduler, and the null binder as the ceiling.

All three get the same configuration file: one profile with every default, the service account's
kubeconfig, and a client limit that nobody reaches. Each is made once per world and started once
per run.
"""

import http.client
import json
import math
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import yaml

from k8s_scheduler.api.config.extras import EXTRAS_API_VERSION, EXTRAS_KIND
from testbed.bench.null_binder import read_status
from testbed.bench.scenario_pods import BENCH_SCHEDULER, CHURN
from testbed.bench.world import World
from testbed.binaries import Toolset, find_tools
from testbed.component import tail
from testbed.daemon import PROGRAM, READY_SECONDS, STOP_SECONDS, Daemon
from testbed.errors import ComponentError, TestbedError
from testbed.layout import Layout
from testbed.options import SCHEDULER
from testbed.ports import choose_ports
from testbed.processes import ProcessId

# Pods that no node has room for, and what comes and goes beside the measured ones.
NOT_MEASURED = ("background-", CHURN)
CLIENT_QPS = 5000  # requests per second; more than the API server answers


class Contestant(Protocol):
    """A scheduler that is started on a restored world, and stopped."""

    @property
    def name(self) -> str:
        """What the tables call it."""
        ...

    @property
    def pid(self) -> int | None:
        """Its process; None while it is down."""
        ...

    @property
    def log(self) -> Path:
        """Where it logs."""
        ...

    def start(self) -> None:
        """Start it; it is not ready yet, and binds as soon as it is."""
        ...

    def is_ready(self) -> bool:
        """Whether its caches are synced."""
        ...

    def wait_ready(self, *, timeout_seconds: float = READY_SECONDS) -> None:
        """Wait until it is ready; ComponentError with its last log lines if it dies or is late."""
        ...

    def stop(self) -> None:
        """End it and wait for its end. Safe to repeat."""
        ...


@dataclass(frozen=True, slots=True)
class BatchChoice:
    """A `batch` of the extras document other than the default."""

    max_pods: int
    max_milliseconds: int

    @classmethod
    def parse(cls, text: str) -> "BatchChoice":
        """Read `64/10`; ValueError if it is something else."""
        pods, _, milliseconds = text.partition("/")
        if not (pods.isdecimal() and milliseconds.isdecimal()):
            raise ValueError(f"{text!r} is no batch; maxPods/maxMilliseconds is, such as 64/10")
        return cls(int(pods), int(milliseconds))

    @property
    def contestant(self) -> str:
        """What the tables call the scheduler that runs with it."""
        return f"batch {self.max_pods}/{self.max_milliseconds}"

    def document(self) -> dict[str, object]:
        """Return the extras document that chooses it."""
        batch = {"maxPods": self.max_pods, "maxMilliseconds": self.max_milliseconds}
        return {"apiVersion": EXTRAS_API_VERSION, "kind": EXTRAS_KIND, "batch": batch}


def configuration(kubeconfig: Path, *, qps: int = 0, batch: BatchChoice | None = None) -> str:
    """Return the configuration that all contestants run with; 0 leaves the limit as it is.

    kube-scheduler's is 50 requests per second and has to be lifted, this scheduler has none.
    """
    limit = {"qps": qps, "burst": qps} if qps else {}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {
            "kubeconfig": str(kubeconfig),
            **limit,
        },
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": BENCH_SCHEDULER}],
    }
    documents = [document] if batch is None else [document, batch.document()]
    return yaml.safe_dump_all(documents, sort_keys=False)


class Ours:
    """This scheduler, as a user would start it."""

    def __init__(
        self,
        world: World,
        *,
        name: str = "k8s-scheduler",
        flags: Sequence[str] = (),
        batch: BatchChoice | None = None,
    ) -> None:
        self.name = name if batch is None else batch.contestant
        self._daemon = Daemon(
            world.bed,
            name=self.name.replace(" ", "-").replace("/", "-"),
            configuration=configuration(world.kubeconfig, batch=batch),
            kubeconfig=world.kubeconfig,
            flags=flags,
        )

    @property
    def pid(self) -> int | None:
        """Its process; None while it is down."""
        return self._daemon.pid

    @property
    def log(self) -> Path:
        """Where it logs."""
        return self._daemon.log

    def start(self) -> None:
        """Start it; it is not ready yet."""
        self._daemon.start(wait=False)

    def is_ready(self) -> bool:
        """Whether its caches are synced."""
        return self._daemon.is_ready()

    def wait_ready(self, *, timeout_seconds: float = READY_SECONDS) -> None:
        """Wait until it is ready."""
        self._daemon.wait_ready(timeout_seconds=timeout_seconds)

    def kept_share(self) -> float:
        """Return the share of its decisions that were made from an evaluation it had kept."""
        asked = {
            name: value
            for name, value in self._daemon.metrics().items()
            if name.startswith("k8s_scheduler_shape_questions_total{")
        }
        kept = sum(value for name, value in asked.items() if 'answer="kept"' in name)
        return kept / total if (total := sum(asked.values())) else math.nan

    def stop(self) -> None:
        """End it; a bad end is a ComponentError."""
        if self.pid is not None and (code := self._daemon.stop()) != 0:
            raise ComponentError(f"{self.name} ended with {code}; {self._daemon.log_tail()}")


class Recorded(Ours):
    """This scheduler while it records, which tells the order in which it decided.

    Many Bindings are under way at once, and the API server gets them in another order. Where the
    pods of a workload count for each other, a placement can only be judged by the order of the
    decisions.
    """

    def __init__(self, world: World) -> None:
        self._folder = world.bed.state_dir / "recording"
        super().__init__(world, name="recorded", flags=("--record", str(self._tape)))

    @property
    def _tape(self) -> Path:
        return self._folder / "tape"

    def start(self) -> None:
        """Start it with a new recording."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        super().start()

    def decided(self) -> tuple[str, ...]:
        """Return the pods in the order of their decisions; TestbedError if that can't be read.

        After it has ended: the recording is not complete before.
        """
        records = self._folder / "decisions.jsonl"
        options = ("--quiet", "--check", "--decisions", str(records))
        command = [str(PROGRAM), "replay", *options, str(self._tape)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TestbedError(f"the recording can't be replayed: {done.stderr or done.stdout}")
        with records.open(encoding="utf-8") as lines:
            decisions = [json.loads(line) for line in lines]
        return tuple(decision["name"] for decision in decisions if decision["node"])


class _Program:
    """What kube-scheduler and the null binder share: a process of the bed and a complaint."""

    def __init__(
        self,
        world: World,
        name: str,
        command: Callable[[Path], Sequence[str]],
        *,
        complaint: Callable[[], str],
        good_ends: Collection[int],
        qps: int = 0,
        may_linger: bool = False,
    ) -> None:
        """Prepare it; `command` is told the configuration file, `complaint` is empty when ready."""
        self.name = name
        self._bed = world.bed
        self._complaint = complaint
        self._good_ends = good_ends
        self._may_linger = may_linger
        self.folder = world.bed.state_dir / name
        self.folder.mkdir(exist_ok=True)
        config = self.folder / "config.yaml"
        config.write_text(configuration(world.kubeconfig, qps=qps), encoding="utf-8")
        self._program = world.bed.add_program(name, command(config))

    @property
    def pid(self) -> int | None:
        """Its process; None while it is down."""
        return self._bed.pid(self.name)

    @property
    def log(self) -> Path:
        """Where it logs."""
        return self._bed.log(self.name)

    def start(self) -> None:
        """Start it; it is not ready yet."""
        self._bed.start_program(self.name)

    def is_ready(self) -> bool:
        """Whether its caches are synced."""
        return not self._complaint()

    def wait_ready(self, *, timeout_seconds: float = READY_SECONDS) -> None:
        """Wait until it is ready."""
        self._program.wait_ready(self._complaint, timeout_seconds=timeout_seconds)

    def stop(self) -> None:
        """End it; a bad end is a ComponentError."""
        process = None if self.pid is None else ProcessId.of(self.pid)
        if process is None:
            return
        process.send(signal.SIGTERM)
        try:
            code = self._bed.wait_program(self.name, timeout_seconds=STOP_SECONDS)
        except subprocess.TimeoutExpired as error:
            if not self._may_linger:
                raise ComponentError(f"{self.name} does not end; {tail(self.log)}") from error
            # What was to be measured is over, and how somebody else's program ends is not ours.
            process.send(signal.SIGKILL)
            self._bed.wait_program(self.name, timeout_seconds=STOP_SECONDS)
            return
        if code not in self._good_ends:
            raise ComponentError(f"{self.name} ended with {code}; {tail(self.log)}")


class Upstream(_Program):
    """kube-scheduler with its defaults: it samples nodes, and logs next to nothing."""

    def __init__(
        self, world: World, *, find: Callable[[Collection[str]], Toolset] = find_tools
    ) -> None:
        binary = find([SCHEDULER]).binaries[SCHEDULER]
        self.version = binary.version
        (self._port,) = choose_ports(1, taken=set())
        pki = Layout(world.bed.state_dir).pki
        self._ca = pki / "ca.crt"
        super().__init__(
            world,
            SCHEDULER,
            lambda config: [
                str(binary.path),
                f"--config={config}",
                f"--authentication-kubeconfig={world.kubeconfig}",
                f"--authorization-kubeconfig={world.kubeconfig}",
                "--bind-address=127.0.0.1",
                f"--secure-port={self._port}",
                f"--tls-cert-file={pki / 'serving.crt'}",
                f"--tls-private-key-file={pki / 'serving.key'}",
            ],
            complaint=self._ask,
            qps=CLIENT_QPS,
            # Told to end, it says that it ended without leader election, and that is its failure.
            good_ends=(0, 1),
            # With a queue full of pods it can take longer than anybody wants to wait.
            may_linger=True,
        )

    def _ask(self) -> str:
        context = ssl.create_default_context(cafile=self._ca)
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=5, context=context
        )
        try:
            connection.request("GET", "/readyz")
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
        except OSError as error:
            return str(error)
        finally:
            connection.close()
        return "" if response.status == 200 else text or str(response.status)


class NullBinder(_Program):
    """The ceiling: the daemon's traffic without a decision."""

    def __init__(self, world: World, *, leave: Sequence[str] = NOT_MEASURED) -> None:
        """Prepare it; it leaves pods and nodes alone whose name has a prefix in `leave`."""
        super().__init__(
            world,
            "null-binder",
            lambda config: [
                sys.executable,
                "-m",
                "testbed.bench.null_binder",
                f"--config={config}",
                f"--status={self._status}",
                *(f"--leave={prefix}" for prefix in leave),
            ],
            complaint=self._read,
            good_ends=(0,),
        )

    @property
    def _status(self) -> Path:
        return self.folder / "status.json"

    def start(self) -> None:
        """Start it; what an earlier run said of itself is forgotten."""
        self._status.unlink(missing_ok=True)
        super().start()

    def bound(self) -> int:
        """Return how many pods it has bound, by its own account."""
        return read_status(self._status).get("bound", 0)

    def _read(self) -> str:
        return "" if read_status(self._status).get("ready") else "its caches are not synced"
