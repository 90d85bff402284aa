"""Whether a configuration file can change at all.

What is mounted by a volume's `subPath` stays as it was when the container started, whatever
becomes of the ConfigMap. Only the volume's own directory follows: there the kubelet swaps a link to
a folder with a time in its name, `..2026_01_31_…`, and a mount by subPath is of a file, or more
seldom of a directory, in such a folder. That is logged at the start, not on the day of the first
change.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/proc/self/mountinfo")
# A line has what is mounted, within its file system, as its fourth field, and where as its fifth.
_ROOT: Final = 3
_MOUNT_POINT: Final = 4
# A folder that the kubelet has made for one state of a volume.
_STATE: Final = re.compile(r"/\.\.[^/]")
_ESCAPED: Final = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}

ADVICE: Final = (
    "the file is mounted by itself (subPath), and such a mount never shows a change; mount the "
    "volume's directory instead, or use --config-map"
)


def is_mounted_alone(path: Path, *, mounts: Path = _MOUNTS) -> bool:
    """Return whether a file is mounted by a subPath; False where that can't be known."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
        places = {path.absolute(), path.resolve()}
    except OSError:
        return False
    # Of several mounts on one place the last is the one that is seen.
    mounted = {
        Path(_unescaped(fields[_MOUNT_POINT])): _unescaped(fields[_ROOT])
        for line in lines
        if len(fields := line.split()) > _MOUNT_POINT
    }
    return any(_never_changes(place, mounted) for place in places)


def _never_changes(place: Path, mounted: Mapping[Path, str]) -> bool:
    if place in mounted:
        return True
    above = next((parent for parent in place.parents if parent in mounted), None)
    return above is not None and _STATE.search(mounted[above]) is not None


def _unescaped(text: str) -> str:
    for escaped, plain in _ESCAPED.items():
        text = text.replace(escaped, plain)
    return text
