"""Running Go for minutes without leaving the user in the dark.

`go build -v` names each package as it is compiled and `go list -deps` says how many there are at
most (those already in Go's cache are not named), so progress is `compiled n of up to m`. On a
terminal it is one line rewritten every second, elsewhere a line every 20 seconds. A failure
carries the last lines that are not package names: that is where the reason stands.
"""

import json
import os
import selectors
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol, cast

from testbed.errors import BuildError
from testbed.golang import GoTool
from testbed.processes import dying_with_us

_KEPT_LINES = 25
_TERMINAL_SECONDS = 1.0
_LOG_SECONDS = 20.0


class Screen(Protocol):
    """Where progress is written: a text stream such as stderr."""

    def write(self, text: str, /) -> object:
        """Write text."""

    def flush(self) -> object:
        """Make it visible."""

    def isatty(self) -> bool:
        """Whether a line can be rewritten."""


class Progress:
    """One line about a long task, repeated at a bearable rate."""

    def __init__(self, screen: Screen, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._clock = clock
        self._started = clock()
        self._shown = self._started
        self._interval = _TERMINAL_SECONDS if screen.isatty() else _LOG_SECONDS
        self._open_line = False

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since this task began."""
        return self._clock() - self._started

    def say(self, text: str) -> None:
        """Print a line of its own, at once."""
        if self._open_line:
            self._screen.write("\n")
            self._open_line = False
        self._screen.write(f"testbed: {text}\n")
        self._screen.flush()

    def tick(self, text: str) -> None:
        """Show `text` with the time elapsed, unless something was shown just now."""
        now = self._clock()
        if now - self._shown < self._interval:
            return
        self._shown = now
        line = f"testbed: {text}, {elapsed(now - self._started)}"
        if self._screen.isatty():
            self._screen.write(f"\r\x1b[K{line}")
            self._open_line = True
        else:
            self._screen.write(f"{line}\n")
        self._screen.flush()


def elapsed(seconds: float) -> str:
    """Format a duration as people say it: `7m05s`, `42s`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def list_packages(
    go: GoTool, packages: Sequence[str], *, module_dir: Path, progress: Progress
) -> frozenset[str]:
    """Return everything the packages are made of, downloading their modules on the way."""
    downloaded = 0

    def count(line: str) -> None:
        nonlocal downloaded
        downloaded += line.startswith("go: downloading ")
        progress.tick(f"downloading Go modules: {downloaded} so far")

    listed = _run([str(go.path), "list", "-deps", *packages], go=go, cwd=module_dir, on_line=count)
    return frozenset(listed.split())


def download_module(go: GoTool, module: str, *, module_dir: Path, progress: Progress) -> Path:
    """Fetch one required module if Go does not have it yet; return its folder."""
    command = [str(go.path), "mod", "download", "-json", module]
    answer = _run(
        command, go=go, cwd=module_dir, on_line=lambda _: progress.tick(f"fetching {module}")
    )
    return Path(json.loads(answer)["Dir"])


def compile_packages(
    go: GoTool,
    arguments: Sequence[str],
    *,
    module_dir: Path,
    work_dir: Path,
    parts: frozenset[str],
    progress: Progress,
) -> int:
    """Run `go build -v` with the arguments; return how many packages had to be compiled.

    Go's intermediate files go to `work_dir`: a killed Go does not remove them itself.
    """
    compiled = 0

    def count(line: str) -> None:
        nonlocal compiled
        compiled += line in parts
        progress.tick(f"compiled {compiled} of up to {len(parts)} packages")

    _run(
        [str(go.path), "build", "-v", *arguments],
        go=go,
        cwd=module_dir,
        on_line=count,
        is_noise=parts.__contains__,
        variables={"GOTMPDIR": str(work_dir)},
    )
    return compiled


def _run(
    command: Sequence[str],
    *,
    go: GoTool,
    cwd: Path,
    on_line: Callable[[str], None],
    is_noise: Callable[[str], bool] = lambda _line: False,
    variables: Mapping[str, str] | None = None,
) -> str:
    """Run Go, feeding its stderr to `on_line` (an empty line each idle second)."""
    last: deque[str] = deque(maxlen=_KEPT_LINES)
    with subprocess.Popen(
        dying_with_us(command),  # a killed build must not go on compiling for minutes
        cwd=cwd,
        env=go.environment() | dict(variables or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            output = bytearray()
            for line in _lines(process, output):
                if line and not is_noise(line):
                    last.append(line)
                on_line(line)
            code = process.wait()
        except BaseException:
            # Ctrl-C or worse: Go must not go on writing into a folder that is being removed.
            process.kill()
            raise
    if code != 0:
        shown = " ".join(command[:3])
        raise BuildError(
            f"`{shown} ...` ended with code {code}; its last lines:\n" + "\n".join(last)
        )
    return output.decode(errors="replace")


def _lines(process: subprocess.Popen[bytes], output: bytearray) -> Iterator[str]:
    """Yield lines of stderr while collecting stdout; an empty string when a second passed idle."""
    # Both were asked for as pipes, which the type of Popen cannot say.
    stdout, stderr = cast("IO[bytes]", process.stdout), cast("IO[bytes]", process.stderr)
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        selector.register(stderr, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(timeout=1.0)
            if not ready:
                yield ""
            for key, _ in ready:
                chunk = os.read(key.fd, 65536)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.fileobj is stdout:
                    output += chunk
                else:
                    *complete, pending = (pending + chunk).split(b"\n")
                    yield from (line.decode(errors="replace") for line in complete)
    if pending:
        yield pending.decode(errors="replace")
