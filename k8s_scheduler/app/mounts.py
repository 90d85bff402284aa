"""Whether a configuration file can change at all.

A file that is mounted by itself (a volume's `subPath`) stays as it was when the container started,
whatever becomes of the ConfigMap. Only a mounted directory follows. Who mounts a single file is
told so at start, not on the day of the first change.
"""

from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/proc/self/mountinfo")
# The mount point is the fifth field of a line.
_MOUNT_POINT: Final = 4
_ESCAPED: Final = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}

ADVICE: Final = (
    "the file is mounted by itself (subPath), and such a mount never shows a change; mount the "
    "directory instead, or use --config-map"
)


def is_mounted_alone(path: Path, *, mounts: Path = _MOUNTS) -> bool:
    """Return whether a file is a mount point of its own; False where that can't be known."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
        wanted = str(path.absolute())
        real = str(path.resolve())
    except OSError:
        return False
    points = {_unescaped(fields[_MOUNT_POINT]) for line in lines if len(fields := line.split()) > 4}
    return wanted in points or real in points


def _unescaped(text: str) -> str:
    for escaped, plain in _ESCAPED.items():
        text = text.replace(escaped, plain)
    return text
