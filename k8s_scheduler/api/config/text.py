"""The text of a configuration file."""

import io
from pathlib import Path
from typing import Final

from k8s_scheduler.api.config.yaml_positions import MAXIMUM_CHARACTERS
from k8s_scheduler.lib.bounded_files import TooLongError, read_bounded

# A character takes up to so many bytes in UTF-8; the parser counts characters.
_MOST_BYTES: Final = 4 * MAXIMUM_CHARACTERS


class UnreadableTextError(Exception):
    """There is no text to be had from a file; the words say why, and go after its name."""


def read_text(path: Path) -> str:
    """Return what a file says, with line ends as in Python; raises UnreadableTextError."""
    try:
        content = read_bounded(path, _MOST_BYTES)
        return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8").read()
    except OSError as error:
        raise UnreadableTextError(f"cannot be read: {error.strerror}") from error
    except TooLongError as error:
        raise UnreadableTextError(str(error)) from error
    except UnicodeDecodeError as error:
        raise UnreadableTextError(f"is not text in UTF-8: byte {error.start} is not") from error
