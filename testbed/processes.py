"""Processes by identity, so that a reused pid is never signalled, and the starting of them.

A pid alone names nothing for long. `ProcessId` adds the start time in clock ticks and the boot
it belongs to; a signal goes through a pidfd whose identity was checked after it was opened.

A child that must die with its owner (`owned=True`) is started through `trampoline.py`, always from
one thread that lives as long as the process: the kernel's parent-death signal fires when the
starting *thread* ends, and a test may well run in a thread that does.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

_TRAMPOLINE = Path(__file__).with_name("trampoline.py")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process, now and for ever."""

    pid: int
    start_ticks: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> "ProcessId | None":
        """Return the identity of the process that has this pid now; None if none has."""
        stat = _stat(pid)
        if stat is None:
            return None
        return cls(pid=pid, start_ticks=stat[1], boot_id=_boot_id())

    def is_alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        stat = _stat(self.pid)
        return (
            stat is not None
            and stat[0] not in "ZX"
            and stat[1] == self.start_ticks
            and self.boot_id == _boot_id()
        )

    def send(self, signal_number: signal.Signals) -> bool:
        """Signal this very process; False if it is gone."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            # The handle is bound to whatever has the pid now; only then is identity worth checking.
            if not self.is_alive():
                return False
            signal.pidfd_send_signal(handle, signal_number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True

    def rss_bytes(self) -> int:
        """Return the resident memory; 0 if the process is gone."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        except (FileNotFoundError, ProcessLookupError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE") if self.is_alive() else 0


def myself() -> ProcessId:
    """Return the identity of this process."""
    own = ProcessId.of(os.getpid())
    if own is None:  # pragma: no cover - a running process has an entry in /proc
        raise OSError("this process has no entry in /proc")
    return own


def end_all(
    processes: Iterable[ProcessId],
    *,
    grace_seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Ask the processes to end, all at once; kill what still runs after the grace period."""
    waiting = [process for process in processes if process.send(signal.SIGTERM)]
    deadline = clock() + grace_seconds
    while waiting := [process for process in waiting if process.is_alive()]:
        if clock() >= deadline:
            break
        sleep(_POLL_SECONDS)
    for process in waiting:
        process.send(signal.SIGKILL)
    # SIGKILL cannot be refused, but it takes the kernel a moment to carry out.
    while any(process.is_alive() for process in waiting):
        sleep(_POLL_SECONDS)


def start_process(
    command: Sequence[str], *, log: Path, env: Mapping[str, str], cwd: Path, owned: bool
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, with its output appended to `log`.

    `owned` programs are killed by the kernel when this process ends, however it ends.
    """
    if not owned:
        return _popen(command, log, env, cwd)
    return _spawner().run(lambda: _popen(dying_with_us(command), log, env, cwd))


def dying_with_us(command: Sequence[str]) -> list[str]:
    """Return the command wrapped so that the kernel kills it when the starting thread ends."""
    return [sys.executable, "-I", "-S", str(_TRAMPOLINE), str(os.getpid()), *command]


def _popen(
    command: Sequence[str], log: Path, env: Mapping[str, str], cwd: Path
) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        # A session of its own: Ctrl-C in the terminal reaches only the owner, who then stops
        # everything in order.
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )


class _Spawner:
    """The thread from which owned children are started; it ends only with the process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._jobs: queue.SimpleQueue[
            tuple[Callable[[], subprocess.Popen[bytes]], Future[subprocess.Popen[bytes]]]
        ] = queue.SimpleQueue()
        threading.Thread(target=self._loop, name="testbed-spawner", daemon=True).start()

    def run(self, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        future: Future[subprocess.Popen[bytes]] = Future()
        self._jobs.put((start, future))
        return future.result()

    def _loop(self) -> None:
        while True:
            start, future = self._jobs.get()
            try:
                future.set_result(start())
            except OSError as error:
                future.set_exception(error)


_the_spawner: list[_Spawner] = []
_spawner_lock = threading.Lock()


def _spawner() -> _Spawner:
    with _spawner_lock:
        # A fork copies the list but not the thread.
        if not _the_spawner or _the_spawner[0].pid != os.getpid():
            _the_spawner[:] = [_Spawner()]
        return _the_spawner[0]


def _stat(pid: int) -> tuple[str, int] | None:
    """Return state and start time from /proc; the name in it may hold spaces and brackets."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])


def _boot_id() -> str:
    return _BOOT_ID.read_text(encoding="ascii").strip()
