"""One process of a bed, from start to end.

    stopped ──start──► starting ──healthy──► running ──stop (SIGTERM) or kill──► stopped
                          │ dies or stays ill: ComponentError with its last log lines

Data and ports are the bed's, so a component that is started again takes up where it was.
"""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.errors import ComponentError
from testbed.layout import Layout
from testbed.processes import ProcessId, start_process

READY_SECONDS = 90.0

_POLL_SECONDS = 0.05
_SHOWN_LINES = 15
# Nothing else of the caller's environment may steer a component: etcd, for one, reads ETCD_*.
_KEPT_VARIABLES = ("PATH", "LANG", "GOMAXPROCS", "GOGC", "GOMEMLIMIT")


class Component:
    """One program of a bed, running or not."""

    def __init__(self, name: str, command: Sequence[str], *, layout: Layout, owned: bool) -> None:
        self.name = name
        self._command = command
        self._layout = layout
        self._owned = owned
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether its process is alive."""
        return self._child is not None and self._child.poll() is None

    def start(self) -> ProcessId:
        """Start the process; it is not ready yet."""
        if self.is_running:
            raise ComponentError(f"{self.name} runs already")
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        folders = {"HOME": str(self._layout.root), "TMPDIR": str(self._layout.scratch)}
        self._child = start_process(
            self._command,
            log=self._layout.log(self.name),
            env=kept | folders,
            cwd=self._layout.root,
            owned=self._owned,
        )
        identity = ProcessId.of(self._child.pid)
        if identity is None:  # pragma: no cover - an unwaited child keeps its /proc entry
            raise self._failed("vanished at start")
        return identity

    def wait_ready(
        self, complaint: Callable[[], str], *, timeout_seconds: float = READY_SECONDS
    ) -> None:
        """Wait until there is no complaint; ComponentError if it dies or takes too long."""
        deadline = time.monotonic() + timeout_seconds
        while trouble := complaint():
            if self._child is None or (code := self._child.poll()) is not None:
                raise self._failed(f"died at start with code {code}" if self._child else "is down")
            if time.monotonic() >= deadline:
                raise self._failed(f"is not ready after {timeout_seconds:g} s: {trouble}")
            time.sleep(_POLL_SECONDS)

    def wait(self, *, timeout_seconds: float) -> int:
        """Wait for the process to end by itself; return its exit code."""
        if self._child is None:
            raise ComponentError(f"{self.name} is down")
        return self._child.wait(timeout_seconds)

    def reap(self) -> None:
        """Collect a process that has been ended, so that no zombie stays."""
        if self._child is not None:
            self._child.wait()
            self._child = None

    def _failed(self, what: str) -> ComponentError:
        log = self._layout.log(self.name)
        return ComponentError(f"{self.name} {what}; the end of {log}:\n{tail(log)}")


def tail(log: Path, *, lines: int = _SHOWN_LINES, width: int = 500) -> str:
    """Return the last lines of a log, long ones cut."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return "(no log)"
    return "\n".join(line[:width] for line in text.splitlines()[-lines:]) or "(empty)"
