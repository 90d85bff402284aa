"""Standard output that takes nothing any more: its reader is gone, or its disk is full."""

import os
import sys
from contextlib import suppress
from pathlib import Path


def abandon_standard_output() -> None:
    """Discard what is buffered.

    Python would write it once more when the process ends, with an error message and an exit code
    of its own.
    """
    # A stream in memory has no descriptor, and nothing to be tried again.
    with suppress(OSError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
