"""One replica of the scheduler behind its own proxy, through all its lives."""

import contextlib
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.bed import Bed
from testbed.chaos.evidence import Ended, Sample
from testbed.component import tail
from testbed.daemon import Daemon
from testbed.errors import TestbedError
from testbed.processes import ProcessId
from testbed.proxy.server import FaultProxy

_RECORD_BYTES = 1 << 30
_WORDS_LINES = 5


class Replica:
    """Starts a new process whenever the last one has ended, as a kubelet would."""

    def __init__(
        self,
        bed: Bed,
        name: str,
        *,
        proxy: FaultProxy,
        config_file: Path,
        flags: Sequence[str],
        folder: Path,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self.proxy = proxy
        self.login = bed.state_dir / f"{name}-login"
        self._bed = bed
        self._kubeconfig = proxy.log_in(self.login)
        self._config_file = config_file
        self._flags = flags
        self._folder = folder
        self._clock = clock
        self._lives = 0
        self._asked = False
        self._daemon: Daemon | None = None
        self.ends: list[Ended] = []
        self.is_frozen = False

    @property
    def process_name(self) -> str:
        """The name of its present or last life."""
        return f"{self.name}-{self._lives}"

    @property
    def is_up(self) -> bool:
        """Whether its process is there, frozen or not."""
        return self._daemon is not None and self._daemon.pid is not None

    def start(self) -> None:
        """Begin a life; it is not ready yet."""
        self._lives += 1
        self._asked = self.is_frozen = False
        record = self._folder / "record" / f"{self.process_name}.tape"
        self._daemon = Daemon(
            self._bed,
            name=self.process_name,
            config_file=self._config_file,
            kubeconfig=self._kubeconfig,
            flags=[*self._flags, f"--record={record}", f"--record-max-bytes={_RECORD_BYTES}"],
        ).start(wait=False)

    def wait_ready(self) -> None:
        """Wait until its caches are synced."""
        if self._daemon is not None:
            self._daemon.wait_ready()

    def signal(self, number: signal.Signals) -> None:
        """Signal it; an end that follows is one that was asked for."""
        self._asked = self._asked or number in {signal.SIGKILL, signal.SIGTERM}
        if number is signal.SIGSTOP:
            self.is_frozen = True
        elif number is signal.SIGCONT:
            self.is_frozen = False
        if self._daemon is not None and self._daemon.pid is not None:
            with contextlib.suppress(TestbedError):
                self._daemon.signal(number)

    def collect(self) -> bool:
        """Note the end of its process if there was one; return whether it is down."""
        if self._daemon is None:
            return True
        if self._daemon.pid is not None:
            return False
        code = self._bed.wait_program(self.process_name, timeout_seconds=10)
        words = tail(self._daemon.log, lines=_WORDS_LINES)
        ended = Ended(self._clock(), self.process_name, code, self._asked, words)
        self.ends.append(ended)
        self._daemon = None
        return True

    def leads(self) -> bool:
        """Whether it says that it is the leader."""
        if self._daemon is None or self.is_frozen or not self.is_up:
            return False
        try:
            return self._daemon.get("/readyz")[1].strip().endswith("role: leader")
        except OSError:
            return False

    def metrics(self) -> dict[str, float]:
        """Return its metrics; none while it can't say."""
        if self._daemon is None or self.is_frozen or not self.is_up:
            return {}
        try:
            return self._daemon.metrics()
        except OSError:
            return {}

    def sample(self) -> Sample | None:
        """Look at its process from outside."""
        pid = None if self._daemon is None else self._daemon.pid
        process = None if pid is None else ProcessId.of(pid)
        if process is None:
            return None
        try:
            files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        except OSError:
            return None
        rss = process.rss_bytes()
        return Sample(self._clock(), self.process_name, rss, files) if rss else None
