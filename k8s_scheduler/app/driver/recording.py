"""Writes everything the core is told, and what it decides, to a file, in segments.

    FILE ── full, or a new start ──▶ FILE.1 ──▶ FILE.2 ──▶ FILE.3 ──▶ dropped

Each segment starts with a checkpoint, so any one of them can be replayed alone; it is full when
what follows the checkpoint is. What an earlier run left in FILE is kept as FILE.1: a crash is when
it is wanted most. A large checkpoint is written in slices; what the core is told meanwhile waits in
memory and follows. Decisions are noted with the versions that the informers had reached, so that
a reader of the recording knows what was seen.
Recording is never worth a missed pod: if the file can't be written any more, that is logged,
shown by a metric, and scheduling goes on without it.
"""

import asyncio
import itertools
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias

from k8s_scheduler.core.messages.answers import summaries_of
from k8s_scheduler.core.messages.incoming import Message, Schedule
from k8s_scheduler.core.messages.outgoing import Instruction
from k8s_scheduler.core.messages.recording import (
    MAGIC,
    Answer,
    End,
    Versions,
    checkpoint_frames,
    frame,
)
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import header_of
from k8s_scheduler.lib.slices import SliceMeter
from k8s_scheduler.obs.metrics import RecordingMetrics

logger = logging.getLogger(__name__)

OLD_SEGMENTS = 3
_BUFFER_BYTES = 1 << 20

# Yields (resource, version up to which everything is applied).
Progress: TypeAlias = Callable[[], Iterable[tuple[str, str]]]


class Recording:
    """A recording under way."""

    def __init__(
        self,
        path: Path,
        core: Scheduler,
        *,
        max_bytes: int,
        clock: Callable[[], float],
        meter: SliceMeter,
        metrics: RecordingMetrics,
    ) -> None:
        """Start the first segment; OSError if the file can't be opened."""
        self._path = path
        self._core = core
        self._max_bytes = max_bytes
        self._clock = clock
        self._meter = meter
        self._metrics = metrics
        self._size = 0
        self._progress: Progress | None = None
        self._noted: dict[str, str] = {}
        # Frames that wait for the checkpoint before them; None when nothing is in the way.
        self._behind: list[bytes] | None = None
        self._wake = asyncio.Event()
        try:
            self._make_room()
            self._file: BinaryIO | None = self._open()
        except OSError as error:
            message = f"cannot record to {path}: {os.strerror(error.errno or 0)}"
            raise OSError(error.errno, message) from error
        self._rest: Iterator[bytes] = iter(())
        self._begin_segment()

    def follow(self, progress: Progress) -> None:
        self._progress = progress

    def write(self, message: Message) -> None:
        """Take a message; call it before the core handles the message."""
        if self._behind is None and self._size >= self._max_bytes:
            # Before the message, not after it: the checkpoint must not lack what came before.
            self._rotate()
        if self._file is None:
            return
        if type(message) is Schedule and self._progress is not None:
            self._note(self._progress())
        self._append(frame(message))

    def answered(self, instructions: Iterable[Instruction]) -> None:
        """Take what the core made of the message; most lead to nothing, and take no room."""
        if self._file is not None and (summaries := summaries_of(instructions)):
            self._append(frame(Answer(summaries)))

    def _note(self, progress: Iterable[tuple[str, str]]) -> None:
        noted = self._noted
        moved = {name: version for name, version in progress if noted.get(name) != version}
        if moved:
            noted.update(moved)
            self._append(frame(Versions(moved)))

    def _append(self, body: bytes) -> None:
        if self._behind is not None:
            self._behind.append(body)
        else:
            self._put(body)

    async def run(self) -> None:
        """Write checkpoints in slices, whenever a segment begins."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            part = self._meter.start("recording")
            for body in self._rest:
                self._put(body)
                if part.full():
                    await part.breathe()
            self._size = 0
            behind, self._behind = self._behind or [], None
            for body in behind:
                self._put(body)
            part.finish()

    def start_segment(self, core: Scheduler) -> None:
        """Begin another segment, of another core."""
        self._core = core
        if self._behind is not None:
            # What is left of the checkpoint before it; another core's could not follow it.
            for body in itertools.chain(self._rest, self._behind):
                self._put(body)
            self._behind = None
        if self._file is not None:
            self._rotate()

    def flush(self) -> None:
        self._try(lambda file: file.flush())

    def close(self) -> None:
        """Write what is left of a checkpoint, and end."""
        for body in self._rest:
            self._put(body)
        for body in self._behind or ():
            self._put(body)
        self._behind = None
        self._finish_segment()
        self._file = None
        self._metrics.active.set(0)

    def _begin_segment(self) -> None:
        self._size = 0
        self._noted = {}
        self._put(MAGIC)
        self._put(frame(header_of(self._core.setup, started=self._clock())))
        self._rest = checkpoint_frames(self._core.checkpoint())
        self._behind = []
        self._metrics.active.set(0 if self._file is None else 1)
        self._wake.set()

    def _finish_segment(self) -> None:
        self._put(frame(End()))
        self._try(lambda file: file.close())

    def _rotate(self) -> None:
        self._finish_segment()
        if self._file is None:
            return
        try:
            self._make_room()
            self._file = self._open()
        except OSError as error:
            self._give_up(error)
            return
        self._begin_segment()

    def _make_room(self) -> None:
        """Move every segment one number up; the oldest goes."""
        for number in range(OLD_SEGMENTS, 0, -1):
            older = self._numbered(number - 1)
            if older.is_file() and older.stat().st_size:
                older.replace(self._numbered(number))

    def _numbered(self, number: int) -> Path:
        return self._path if number == 0 else self._path.with_name(f"{self._path.name}.{number}")

    def _open(self) -> BinaryIO:
        return open(self._path, "wb", buffering=_BUFFER_BYTES, opener=_for_us_alone)

    def _put(self, data: bytes) -> None:
        if self._try(lambda file: file.write(data)):
            self._size += len(data)
            self._metrics.bytes.inc(len(data))

    def _try(self, act: Callable[[BinaryIO], object]) -> bool:
        """Do something with the file if there still is one; return whether that went well."""
        if self._file is None:
            return False
        try:
            act(self._file)
        except OSError as error:
            self._give_up(error)
            return False
        return True

    def _give_up(self, error: OSError) -> None:
        file, self._file = self._file, None
        self._behind = None
        self._metrics.active.set(0)
        logger.error(
            "Recording stopped; scheduling goes on",
            extra={"fields": {"file": str(self._path), "error": str(error)}},
        )
        if file is not None and not file.closed:
            try:
                file.close()
            except OSError:
                # Closing flushes, and the disk has already refused that once.
                logger.debug("Recording could not be closed cleanly")


def _for_us_alone(path: str, flags: int) -> int:
    """Open a file that no other user may read: it holds every pod and node of the cluster."""
    return os.open(path, flags, mode=0o600)
