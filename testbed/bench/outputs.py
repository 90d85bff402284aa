"""Where results go: looked at before anything runs, for a benchmark takes minutes or hours."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# What comes of it if an option is left out.
_WITHOUT = {
    "OUT": "no file is written, and what is not in the tables is lost",
    "PLOTS": "no pictures are drawn",
}


def check_file(path: Path | None, option: str) -> None:
    """Raise ValueError if no file can be written there; None is no file."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"{option}={path}: that is a folder; name a file")
    if not path.parent.is_dir():
        raise ValueError(f"{option}={path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{option}={path}: it can't be written")


def check_folder(path: Path | None, option: str) -> None:
    """Raise ValueError if there is no such folder and none can be made; None is no folder."""
    if path is None:
        return
    existing = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not existing.is_dir():
        raise ValueError(f"{option}={path}: {existing} is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ValueError(f"{option}={path}: {existing} can't be written to")


def kept(places: Mapping[str, Path | None]) -> Iterator[str]:
    """Yield where results are kept, by option; also where nothing is."""
    for option, path in places.items():
        if path is None:
            yield f"{option} is not given: {_WITHOUT[option]}."
        else:
            yield f"{option}: {path}"


def write_json(path: Path | None, found: Mapping[str, Any]) -> None:
    """Write everything to a file, if there is one."""
    if path is not None:
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
