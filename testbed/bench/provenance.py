"""What a benchmark ran on and with: figures mean nothing without it."""

import platform
import re
import subprocess
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import k8s_scheduler
from testbed.binaries import Toolset, find_tools
from testbed.options import API_SERVER, ETCD, SCHEDULER

# What this set-up can't show; it stands under every table and every plot.
CAVEATS = (
    "etcd runs without fsync: a real one is slower, for every scheduler.",
    "Everything shares the cores listed: kube-scheduler's 16 workers have no 16 cores to run on.",
    "There are no kubelets: nobody reports pods as running, and nothing is ever pulled.",
    "The machine is shared and noisy: compare columns of one run, never figures of two.",
)

_PROJECT = Path(__file__).parents[2]
_GIT_SECONDS = 10.0


def provenance() -> dict[str, Any]:
    """Return date, machine, versions and caveats, as they stand in the file of a benchmark."""
    return {
        "date": datetime.now(tz=UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "caveats": list(CAVEATS),
    }


def machine() -> dict[str, Any]:
    """Return what it ran on."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    memory = Path("/proc/meminfo").read_text(encoding="utf-8")
    model = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    total = re.search(r"^MemTotal:\s+(\d+) kB", memory, re.MULTILINE)
    return {
        "processor": model[1] if model else platform.machine(),
        "cores": len(re.findall(r"^processor\s*:", info, re.MULTILINE)),
        "memory_gib": round(int(total[1]) / 2**20, 1) if total else None,
        "kernel": platform.release(),
    }


def versions(
    *,
    find: Callable[[Collection[str]], Toolset] = find_tools,
    project: Path = _PROJECT,
) -> dict[str, str]:
    """Return the versions of everything that took part, by name."""
    programs = find((SCHEDULER, API_SERVER, ETCD)).binaries
    return {
        "k8s-scheduler": k8s_scheduler.__version__,
        "commit": _commit(project),
        "python": platform.python_version(),
        **{name: binary.version for name, binary in programs.items()},
    }


def _commit(project: Path) -> str:
    """Return which commit the tree is at, and whether it was changed since."""
    try:
        head = _git(project, "rev-parse", "--short=12", "HEAD")
        changes = _git(project, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return f"{head} with changes" if changes else head


def _git(project: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(project), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=_GIT_SECONDS,
    )
    return done.stdout.strip()
