"""Which helm is built: go.mod is the only place that says so."""

import re
from pathlib import Path

from testbed.cache import MODULE_FILES
from testbed.compiling import Screen
from testbed.errors import TestbedError
from testbed.programs import Program, ensure_program

MODULE_DIR = Path(__file__).parent

_MODULE = "helm.sh/helm/v3"
_REQUIRED = re.compile(rf"^\s+{re.escape(_MODULE)} (v\S+)", re.MULTILINE)


def helm_version(module_dir: Path = MODULE_DIR) -> str:
    """Return which helm is pinned."""
    found = _REQUIRED.search((module_dir / "go.mod").read_text(encoding="utf-8"))
    if found is None:
        raise TestbedError(f"{module_dir / 'go.mod'} does not require {_MODULE}")
    return found.group(1)


def ensure_helm(
    *, cache: Path | None = None, module_dir: Path = MODULE_DIR, screen: Screen | None = None
) -> Path:
    """Return the program, building it if it is not there; raises TestbedError."""
    version = helm_version(module_dir)
    helm = Program(
        name="helm",
        title="helm",
        release=version,
        version=version,
        module_dir=module_dir,
        flags=("-trimpath", "-buildvcs=false", "-ldflags", "-s -w"),
        takes="a minute or two",
        package=f"{_MODULE}/cmd/helm",
        # What is built is somebody else's.
        files=MODULE_FILES,
    )
    return ensure_program(helm, cache=cache, screen=screen)
