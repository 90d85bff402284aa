"""Finding the programs of a bed: ready-made where there are any, built where there are none.

Each component is looked for on its own, in this order:

    $KUBEBUILDER_ASSETS/<component>  →  <component> on PATH  →  the build cache  →  a build

A ready-made program of another version than go.mod pins is used all the same, and said in one
line, for only the user knows whether that was meant. K8S_SCHEDULER_READY_BINARIES=0 turns the
first two places off.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.build import CONTROL_PLANE, CONTROL_PLANE_LINKS, KWOK, STAGES, BuildDir, ensure_built
from testbed.errors import TestbedError
from testbed.versions import Versions, read_versions

COMPONENTS = (*CONTROL_PLANE_LINKS, KWOK)

_VERSION = re.compile(r"\bv?(\d+\.\d+\.\d+[\w.+-]*)")


@dataclass(frozen=True, slots=True)
class Binary:
    """One program and where it came from."""

    path: Path
    version: str
    origin: str


@dataclass(frozen=True, slots=True)
class Toolset:
    """Everything a bed starts: programs by component, and kwok's stages where kwok is one."""

    binaries: Mapping[str, Binary]
    stages: Path | None = None


def _print_to_stderr(text: str) -> None:
    print(f"testbed: {text}", file=sys.stderr)


def find_tools(
    components: Collection[str],
    *,
    environ: Mapping[str, str] | None = None,
    build: Callable[[Collection[str]], BuildDir] = ensure_built,
    say: Callable[[str], None] = _print_to_stderr,
) -> Toolset:
    """Return the programs of the components, building what is not there."""
    if unknown := set(components) - set(COMPONENTS):
        raise TestbedError(
            f"no such component: {', '.join(sorted(unknown))}; there are {', '.join(COMPONENTS)}"
        )
    env = os.environ if environ is None else environ
    versions = read_versions()
    binaries: dict[str, Binary] = {}
    if env.get("K8S_SCHEDULER_READY_BINARIES", "1") != "0":
        for component in components:
            if ready := _find_ready(component, env):
                binaries[component] = ready
                _compare(component, ready, versions=versions, say=say)
    to_build = [component for component in components if component not in binaries]
    products = {CONTROL_PLANE if name in CONTROL_PLANE_LINKS else name for name in to_build}
    if KWOK in components:
        products.add(STAGES)
    built = build(products) if products else None
    for component in to_build:
        if built is None:  # pragma: no cover - to_build is not empty, so products was not
            raise TestbedError(f"nothing was built for {component}")
        binaries[component] = Binary(
            path=built.product(component), version=versions.of(component), origin="build cache"
        )
    return Toolset(
        binaries=binaries, stages=built.product(STAGES) if built and KWOK in components else None
    )


def _find_ready(component: str, env: Mapping[str, str]) -> Binary | None:
    places = {"KUBEBUILDER_ASSETS": env.get("KUBEBUILDER_ASSETS", ""), "PATH": env.get("PATH", "")}
    for origin, folders in places.items():
        found = shutil.which(component, path=folders) if folders else None
        if found is not None:
            path = Path(found).absolute()
            return Binary(path=path, version=_ask_version(path), origin=origin)
    return None


def _ask_version(path: Path) -> str:
    """Run `--version`; a program that cannot tell is of version `unknown`."""
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=True, timeout=30
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    found = _VERSION.search(answer)
    return f"v{found.group(1)}" if found else "unknown"


def _compare(
    component: str, binary: Binary, *, versions: Versions, say: Callable[[str], None]
) -> None:
    wanted = versions.of(component)
    if binary.version != wanted:
        say(
            f"{component} from {binary.origin} ({binary.path}) is {binary.version}, not {wanted}; "
            "K8S_SCHEDULER_READY_BINARIES=0 builds the pinned one instead"
        )
