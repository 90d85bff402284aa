"""The scheduler itself as a process on a bed: `k8s-scheduler run`, as a user would start it."""

import http.client
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.bed import Bed
from testbed.component import tail
from testbed.errors import ComponentError
from testbed.installation import install, log_in, shipped_configuration
from testbed.ports import choose_ports
from testbed.processes import ProcessId

PROGRAM = Path(sys.executable).with_name("k8s-scheduler")
READY_SECONDS = 60.0
STOP_SECONDS = 60.0

_SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*(?:\{[^}]*\})?) (?P<value>\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has cost so far."""

    cpu_seconds: float
    peak_rss_bytes: int


class Daemon:
    """One running scheduler. It logs in as its own service account, under the shipped roles."""

    def __init__(
        self,
        bed: Bed,
        *,
        name: str = "k8s-scheduler",
        configuration: str | None = None,
        config_file: Path | None = None,
        flags: Sequence[str] = ("--leader-elect=false",),
        kubeconfig: Path | None = None,
        program: Sequence[str] = (str(PROGRAM),),
        guarded: bool = False,
        command: str = "run",
        config_map: str = "",
    ) -> None:
        """Prepare it; `program` is what answers to the command line of `k8s-scheduler`.

        With `config_map` it reads its configuration there, and not from a file.

        Its pages are open unless it is `guarded`: they are read while the API server, which would
        be asked about the reader, is busy, measured or away. Who may see them has tests of its own.

        Without a kubeconfig its objects are installed and it is logged in, which takes a running
        API server. Whoever gives one has seen to that. With a `config_file` the configuration is
        what is there, and whoever wrote it may change it.
        """
        self.name = name
        self._bed = bed
        (self.port,) = choose_ports(1, taken=set())
        folder = bed.state_dir / name
        folder.mkdir(exist_ok=True)
        self.config = config_file or folder / "config.yaml"
        if config_file is None:
            self.config.write_text(configuration or shipped_configuration(), encoding="utf-8")
        self.folder = folder
        if kubeconfig is None:
            install(bed)
            kubeconfig = log_in(bed, folder / "kubeconfig")
        self._program = bed.add_program(
            name,
            [
                *program,
                command,
                f"--config-map={config_map}" if config_map else f"--config={self.config}",
                f"--kubeconfig={kubeconfig}",
                "--bind-address=127.0.0.1",
                f"--secure-port={self.port}",
                *([] if guarded else ["--authorization-always-allow-paths=/*"]),
                *flags,
            ],
        )
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE  # it signs its own certificate

    # Life

    def start(self, *, wait: bool = True) -> "Daemon":
        """Start the process and, unless told otherwise, wait until it is ready."""
        self._bed.start_program(self.name)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, *, timeout_seconds: float = READY_SECONDS) -> None:
        """Wait until its caches are synced."""
        self._program.wait_ready(self._complaint, timeout_seconds=timeout_seconds)

    def is_ready(self) -> bool:
        """Whether its caches are synced."""
        return not self._complaint()

    def stop(self) -> int:
        """Ask it to end; return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def wait(self, *, timeout_seconds: float = STOP_SECONDS) -> int:
        """Wait until it has ended by itself; return its exit code."""
        try:
            return self._bed.wait_program(self.name, timeout_seconds=timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise ComponentError(f"{self.name} does not end; {self.log_tail()}") from error

    def kill(self) -> None:
        """End it as a crash would."""
        self._bed.kill(self.name)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process().send(number)

    @property
    def pid(self) -> int | None:
        """Return its pid; None while it is down."""
        return self._bed.pid(self.name)

    # What it says

    @property
    def log(self) -> Path:
        """Return its log file."""
        return self._bed.log(self.name)

    def log_tail(self) -> str:
        """Return the end of its log."""
        return f"the end of {self.log}:\n{tail(self.log)}"

    def get(self, path: str, *, token: str = "") -> tuple[int, str]:
        """Ask its server; OSError if it does not listen."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=5, context=self._context
        )
        try:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def metrics(self) -> dict[str, float]:
        """Return its metrics by name and labels, as they stand on the page."""
        _, text = self.get("/metrics")
        return {m["name"]: float(m["value"]) for m in _SAMPLE.finditer(text)}

    def usage(self) -> Usage:
        """Return what it has cost so far."""
        return usage_of(self._process().pid)

    def _complaint(self) -> str:
        try:
            status, text = self.get("/readyz")
        except OSError as error:
            return str(error)
        return "" if status == 200 else text

    def _process(self) -> ProcessId:
        pid = self.pid
        process = None if pid is None else ProcessId.of(pid)
        if process is None:
            raise ComponentError(f"{self.name} does not run; {self.log_tail()}")
        return process


def usage_of(pid: int) -> Usage:
    """Return what a process has cost so far: CPU of all its threads, and its largest memory."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    peak = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return Usage(
        cpu_seconds=ticks / os.sysconf("SC_CLK_TCK"),
        peak_rss_bytes=int(peak[1]) * 1024 if peak else 0,
    )
