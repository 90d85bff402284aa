"""The processes of a bed together with the record that names them.

Invariant: whenever a process runs, the record on disk names it. It is written right after a start
and right after an end; in the moment between, the kernel's parent-death signal covers an owned
process. Nothing else may start or end a component.
"""

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from testbed.component import Component
from testbed.processes import end_all
from testbed.registry import Record, Registry

_PROJECT = Path(__file__).parent.parent


class Crew:
    """Starts, ends and records the components of one bed."""

    def __init__(
        self, record: Record, *, registry: Registry, components: Mapping[str, Component]
    ) -> None:
        self._record = record
        self._registry = registry
        self._components = components
        self._guardian: subprocess.Popen[bytes] | None = None

    def call_guardian(self) -> None:
        """Have somebody tidy up should this process end before the bed is closed."""
        self._guardian = subprocess.Popen(
            [sys.executable, "-m", "testbed.guardian", self._registry.root, self._record.name],
            cwd=_PROJECT,
            env={**os.environ, "PYTHONPATH": str(_PROJECT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def pid(self, name: str) -> int | None:
        """Return the pid of a component; None while it is down."""
        process = self._record.processes.get(name)
        return process.pid if process is not None and process.is_alive() else None

    def start(self, name: str) -> None:
        """Start a component; it is not ready yet."""
        self._save(self._record.with_process(name, self._components[name].start()))

    def end(self, names: Collection[str], *, grace_seconds: float) -> None:
        """End components at the same time, with SIGTERM and after the grace period SIGKILL."""
        known = self._record.processes
        end_all([known[name] for name in names if name in known], grace_seconds=grace_seconds)
        self._collect(names)

    def wait(self, name: str, *, timeout_seconds: float) -> int:
        """Wait for a component to end by itself; return its exit code."""
        code = self._components[name].wait(timeout_seconds=timeout_seconds)
        self._collect([name])
        return code

    def kill(self, name: str) -> None:
        """Kill a component with SIGKILL, as a crash would."""
        if process := self._record.processes.get(name):
            process.send(signal.SIGKILL)
        self._collect([name])

    def release(self) -> None:
        """Let the bed outlive this process."""
        self._save(dataclasses.replace(self._record, owner=None))
        self._dismiss_guardian()

    def discard(self) -> None:
        """Kill what still runs; remove all files and the record. Safe to repeat."""
        self._registry.discard(self._record)
        self._collect(list(self._components), save=False)
        self._dismiss_guardian()

    def _collect(self, names: Collection[str], *, save: bool = True) -> None:
        record = self._record
        for name in names:
            self._components[name].reap()
            record = record.with_process(name, None)
        if save:
            self._save(record)

    def _save(self, record: Record) -> None:
        self._record = record
        self._registry.save(record)

    def _dismiss_guardian(self) -> None:
        if self._guardian is not None:
            self._guardian.terminate()
            self._guardian.wait()
            self._guardian = None
