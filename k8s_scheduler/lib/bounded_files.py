"""Reads files up to a bound: a wrong path may name a huge or an endless file."""

from pathlib import Path


class TooLongError(Exception):
    """The file is longer than any that could be meant."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"is longer than {most_bytes} bytes; is this the right file?")


def read_bounded(path: Path, most_bytes: int) -> bytes:
    """Return what a file holds; TooLongError or OSError if it can't be had."""
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise TooLongError(most_bytes)
    return content
