"""Which suite is built: that of the bed's own version.

It shares most packages with the control plane: where that was built here, this takes a minute,
otherwise about ten.
"""

from pathlib import Path

from testbed.build import link_flags
from testbed.compiling import Screen
from testbed.programs import Program, ensure_program
from testbed.versions import read_versions

MODULE_DIR = Path(__file__).parent


def ensure_suite(
    *, cache: Path | None = None, module_dir: Path = MODULE_DIR, screen: Screen | None = None
) -> Path:
    """Return the program, building it if it is not there; raises TestbedError."""
    # The suite has to be of the bed's version; a test sees that both go.mod files agree.
    versions = read_versions()
    suite = Program(
        name="e2e",
        title="the end-to-end suite",
        release=f"of Kubernetes {versions.kubernetes}",
        version=versions.kubernetes,
        module_dir=module_dir,
        flags=("-trimpath", "-buildvcs=false", "-ldflags", link_flags(versions)),
        takes="a minute or up to ten",
    )
    return ensure_program(suite, cache=cache, screen=screen)
