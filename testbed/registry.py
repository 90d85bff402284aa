"""Who runs which bed: one small file per bed, so that nothing is lost sight of.

    <temporary folder>/k8s-scheduler-testbed-<uid>/
        .lock            held while records are made or removed and ports are chosen
        <name>.json      a record: owner, state folder, ports, processes with their start times
        <name>/          the state folder of a bed that was given none

    claim ──► save (a process started or ended)* ──► remove
      │            owner dies: the record is an orphan, whoever comes next reaps it
      └─► the owner is None once a bed is detached; then only `down` ends it

The folder itself goes with its last record. A state folder is removed only if it carries the
marker file of that very bed: a record is a file in a temporary folder and no licence to delete.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.errors import BedExistsError, TestbedError
from testbed.processes import ProcessId

MARKER = ".k8s-scheduler-bed"


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of one bed."""

    name: str
    state_dir: Path
    owner: ProcessId | None
    ports: Mapping[str, int] = field(default_factory=dict)
    processes: Mapping[str, ProcessId] = field(default_factory=dict)

    def is_orphan(self) -> bool:
        """Whether the bed belonged to a process that is gone."""
        return self.owner is not None and not self.owner.is_alive()

    def is_running(self) -> bool:
        """Whether any process of it still runs."""
        return any(process.is_alive() for process in self.processes.values())

    def with_process(self, component: str, process: ProcessId | None) -> "Record":
        """Return the record with one component's process changed (None: it ended)."""
        others = {name: known for name, known in self.processes.items() if name != component}
        started = {} if process is None else {component: process}
        return dataclasses.replace(self, processes=others | started)


class Registry:
    """The records of one user on this machine."""

    def __init__(self, root: Path | None = None) -> None:
        default = Path(tempfile.gettempdir()) / f"k8s-scheduler-testbed-{os.getuid()}"
        self.root = default if root is None else root

    def claim(self, record: Record) -> None:
        """Enter a new bed and make its state folder. Only under `locked()`.

        BedExistsError if the name is taken.
        """
        path = self._path(record.name)
        if path.exists():
            raise BedExistsError(f"a bed named {record.name} is registered already ({path})")
        if record.state_dir.exists() and any(record.state_dir.iterdir()):
            raise TestbedError(f"{record.state_dir} is not empty; a bed needs a folder of its own")
        self._write(record)
        record.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        (record.state_dir / MARKER).write_text(record.name, encoding="utf-8")

    def save(self, record: Record) -> None:
        """Replace a record by a newer one."""
        self._write(record)

    def load(self, name: str) -> Record | None:
        """Return the record of that name."""
        try:
            return _decode(self._path(name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None

    def load_all(self) -> list[Record]:
        """Return all records, by name."""
        names = sorted(path.stem for path in self.root.glob("*.json"))
        return [record for name in names if (record := self.load(name)) is not None]

    def discard(self, record: Record) -> None:
        """Kill what still runs of a bed, remove its files, then its record. Safe to repeat."""
        for process in record.processes.values():
            process.send(signal.SIGKILL)
        while record.is_running():  # SIGKILL takes the kernel a moment; files go only after it
            time.sleep(0.01)
        _remove_state(record)
        with self.locked():
            self._path(record.name).unlink(missing_ok=True)

    def discard_orphans(self) -> list[Record]:
        """Discard every bed whose owner is gone; return them."""
        orphans = [record for record in self.load_all() if record.is_orphan()]
        for record in orphans:
            self.discard(record)
        return orphans

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process out of the registry; remove the folder if nothing is left."""
        handle = self._lock()
        try:
            yield
        finally:
            if {path.name for path in self.root.iterdir()} == {".lock"}:
                (self.root / ".lock").unlink()
                self.root.rmdir()
            os.close(handle)

    def _lock(self) -> int:
        while True:
            self._make_root()
            path = self.root / ".lock"
            try:
                handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
            except FileNotFoundError:
                continue  # the folder went in between, with its last record
            fcntl.flock(handle, fcntl.LOCK_EX)
            # While we waited the holder may have removed the file: then we hold a lock on nothing.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), path.lstat()):
                    return handle
            os.close(handle)

    def _make_root(self) -> None:
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = self.root.lstat()
        if self.root.is_symlink() or status.st_uid != os.getuid():
            raise TestbedError(f"{self.root} belongs to somebody else; remove it or set TMPDIR")

    def _path(self, name: str) -> Path:
        return self.root / f"{name}.json"

    def _write(self, record: Record) -> None:
        path = self._path(record.name)
        scratch = path.with_suffix(".new")
        scratch.write_text(_encode(record), encoding="utf-8")
        scratch.replace(path)


def _remove_state(record: Record) -> None:
    marker = record.state_dir / MARKER
    with contextlib.suppress(FileNotFoundError):
        if marker.read_text(encoding="utf-8") == record.name:
            shutil.rmtree(record.state_dir, ignore_errors=True)  # somebody else may be at it too
            if record.state_dir.exists():
                raise TestbedError(f"cannot remove {record.state_dir}")


def _encode(record: Record) -> str:
    return json.dumps(dataclasses.asdict(record), default=str, indent=1)


def _decode(text: str) -> Record:
    data: dict[str, Any] = json.loads(text)
    return Record(
        name=data["name"],
        state_dir=Path(data["state_dir"]),
        owner=ProcessId(**data["owner"]) if data["owner"] else None,
        ports=data["ports"],
        processes={name: ProcessId(**known) for name, known in data["processes"].items()},
    )
