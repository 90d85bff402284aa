"""The process that tidies up after an owner that could not.

    python -m testbed.guardian REGISTRY_FOLDER NAME

It sleeps until the owner of the bed is gone, by whatever way, then discards the bed: processes,
files, record. An owner that stops its bed itself ends the guardian afterwards. The kernel kills
owned components at once anyway (see processes.py); what only the guardian can do is remove files,
and care for a bed that is being started to be detached.
"""

import os
import select
import sys
from pathlib import Path

from testbed.processes import ProcessId
from testbed.registry import Registry


def wait_for_end(process: ProcessId) -> None:
    """Sleep until this very process is gone."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if process.is_alive():
            select.select([handle], [], [])
    finally:
        os.close(handle)


def main(arguments: list[str]) -> None:
    """Wait for the owner's end; discard what it left."""
    root, name = arguments
    registry = Registry(Path(root))
    record = registry.load(name)
    if record is None or record.owner is None:
        return
    wait_for_end(record.owner)
    left = registry.load(name)
    if left is not None and left.is_orphan():
        registry.discard(left)


if __name__ == "__main__":
    main(sys.argv[1:])
