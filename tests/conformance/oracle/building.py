"""Building the oracle, once for each release; the binary lives in the cache, not in the tree.

    python -m tests.conformance.oracle.building [VERSION]

    <cache>/oracle/<version>-<digest of sources>/oracle

Prints the path of the binary. The first build takes some minutes (less, once the test bed is
built: they share what Go compiled); a later one finds the result.
"""

import argparse
import hashlib
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from testbed.cache import cache_root, exclusive
from testbed.compiling import (
    Progress,
    compile_packages,
    elapsed,
    list_packages,
)
from testbed.errors import BuildError, TestbedError
from testbed.golang import GoTool, find_or_install
from tests.conformance.oracle.modules import (
    KUBERNETES,
    MODULE_DIR,
    Release,
    go_version,
    pinned,
    release,
    source_files,
    write_module,
)

_FLAGS = ("-trimpath", "-buildvcs=false")
_FETCH_SECONDS = 900


def ensure_oracle(version: str | None = None, *, cache: Path | None = None) -> Path:
    """Return the oracle for a release, the pinned one unless told; raises TestbedError."""
    wanted = pinned() if version is None else release(version)
    cache = cache or cache_root()
    home = _home(wanted, cache)
    binary = home / "oracle"
    if binary.exists():
        return binary
    progress = Progress(sys.stderr)
    home.mkdir(parents=True, exist_ok=True)
    with exclusive(
        home / "lock", on_wait=lambda: progress.say("another build of the oracle is running")
    ):
        if not binary.exists():
            with tempfile.TemporaryDirectory(prefix="scratch-", dir=home) as scratch:
                _build(wanted, Path(scratch), cache=cache, progress=progress)
                (Path(scratch) / "oracle").replace(binary)
            progress.say(
                f"built the oracle for {wanted.version} in {elapsed(progress.elapsed_seconds)}"
            )
    return binary


def built_oracle(*, cache: Path | None = None) -> Path | None:
    """Return the oracle of the pinned release if it is built already."""
    binary = _home(pinned(), cache or cache_root()) / "oracle"
    return binary if binary.exists() else None


def _home(wanted: Release, cache: Path) -> Path:
    return cache / "oracle" / f"{wanted.version}-{_digest(wanted)}"


def _digest(wanted: Release) -> str:
    digest = hashlib.sha256()
    files = source_files()
    if wanted == pinned():
        files += [MODULE_DIR / "go.mod", MODULE_DIR / "go.sum"]
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode())
        digest.update(content)
    digest.update(" ".join((platform.system(), platform.machine(), *_FLAGS)).encode())
    return digest.hexdigest()[:12]


def _build(wanted: Release, scratch: Path, *, cache: Path, progress: Progress) -> None:
    go = find_or_install(go_version(MODULE_DIR / "go.mod"), cache=cache, say=progress.say)
    module_dir = MODULE_DIR
    if wanted != pinned():
        module_dir = scratch / "module"
        go = _make_module(wanted, module_dir, go=go, cache=cache, progress=progress)
    progress.say(
        f"building the oracle for kube-scheduler {wanted.version} with Go {go.version_text}; "
        "this takes some minutes, later runs use the result"
    )
    packages = ["-tags", wanted.tags, "."]
    parts = list_packages(go, packages, module_dir=module_dir, progress=progress)
    try:
        compile_packages(
            go,
            [*_FLAGS, "-o", str(scratch / "oracle"), *packages],
            module_dir=module_dir,
            work_dir=scratch,
            parts=parts,
            progress=progress,
        )
    except BuildError as error:
        raise BuildError(
            f"the oracle does not compile for {wanted.version}: if the framework changed in that "
            f"release, give it a file of its own beside {MODULE_DIR / 'generation_137.go'} and a "
            f"build tag in modules.py.\n{error}"
        ) from error


def _make_module(
    wanted: Release, folder: Path, *, go: GoTool, cache: Path, progress: Progress
) -> GoTool:
    """Make the module of another release; return the Go that it needs."""
    folder.mkdir()
    (folder / "go.mod").write_text("module oracle\n\ngo 1.21\n", encoding="utf-8")
    progress.say(f"resolving the Go modules of {wanted.version}")
    write_module(folder, wanted, _kubernetes_go_mod(wanted, folder, go=go))
    go = find_or_install(go_version(folder / "go.mod"), cache=cache, say=progress.say)
    done = _run(go, "mod", "tidy", folder=folder)
    if done.returncode != 0:
        last = "\n".join(done.stderr.strip().splitlines()[-15:])
        raise BuildError(
            f"the Go modules of {wanted.version} cannot be resolved; if they cannot be fetched, "
            f"see `go env GOPROXY`. Go said:\n{last}"
        )
    return go


def _kubernetes_go_mod(wanted: Release, folder: Path, *, go: GoTool) -> str:
    """Fetch a release and return its go.mod."""
    module = f"{KUBERNETES}@{wanted.version}"
    # What goes wrong with a module is part of the JSON; what goes wrong with Go is on stderr.
    done = _run(go, "mod", "download", "-json", module, folder=folder)
    said = json.loads(done.stdout or "{}")
    if done.returncode != 0 or "Error" in said:
        raise BuildError(
            f"{module} cannot be fetched: either there is no such release, or Go reaches no "
            f"module proxy (see `go env GOPROXY`). Go said:\n{said.get('Error') or done.stderr}"
        )
    return Path(said["GoMod"]).read_text(encoding="utf-8")


def _run(go: GoTool, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [go.path, *arguments],
        cwd=folder,
        env=go.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=_FETCH_SECONDS,
    )


def main() -> int:
    """Build, and print where the oracle is."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.oracle.building")
    parser.add_argument(
        "version", nargs="?", help=f"of kube-scheduler; {pinned().version} unless given"
    )
    arguments = parser.parse_args()
    try:
        print(ensure_oracle(arguments.version))
    except (TestbedError, subprocess.TimeoutExpired) as error:
        print(f"oracle: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
