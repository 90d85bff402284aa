"""What is wrong in a configuration, and where: errors as data, many at once.

A check never raises on the first thing it finds: it returns `FieldError`s, and the loader raises
one `ConfigurationError` with all of them. The sentences in front of the detail (`Invalid value`,
`Required value`, `Duplicate value`, `Unsupported value`, `Forbidden`) are the ones Kubernetes uses,
because people search for them.
"""

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from k8s_scheduler.obs.redaction import REDACTED

FieldPath: TypeAlias = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_*-]+")
# How much two names must have in common to be near, of 1.
_NEAR = 0.6
# https://user:password@host; it ends with the text it stands in.
_PASSWORD = re.compile(r'(?<=://)[^\s"]*@')


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong; file and line are filled in by the caller that knows them."""

    path: FieldPath
    message: str
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        where = self.file
        if self.line is not None:
            where = f"{self.file}:{self.line}" if self.file else f"line {self.line}"
        parts = (where, render_path(self.path), self.message)
        return _in_one_line(": ".join(part for part in parts if part))


class ConfigurationError(Exception):
    """A configuration that cannot be used, with every reason; one per line when printed."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = tuple(errors)


def _in_one_line(text: str) -> str:
    """Write line breaks and what moves a terminal's cursor as escapes.

    Errors quote names from the file, and each has to stay on a line of its own.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def render_path(path: FieldPath) -> str:
    """Return the path as it is written in messages: `profiles[1].plugins.filter`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not _PLAIN_KEY.fullmatch(part):
            text += f"[{json.dumps(part)}]"
        else:
            text += f".{part}" if text else part
    return text


def render_value(value: Any) -> str:
    """Return a value as it is written in messages: strings quoted, the rest as in YAML.

    Messages become Events: an address is shown without its password.
    """
    return _PASSWORD.sub(f"{REDACTED}@", json.dumps(value, ensure_ascii=False, default=str))


def invalid(path: FieldPath, value: Any, detail: str) -> FieldError:
    return FieldError(path, f"Invalid value: {render_value(value)}: {detail}")


def required(path: FieldPath, detail: str = "") -> FieldError:
    return FieldError(path, f"Required value: {detail}" if detail else "Required value")


def duplicate(path: FieldPath, value: Any, *, first: FieldPath) -> FieldError:
    return FieldError(path, f"Duplicate value: {render_value(value)}: also at {render_path(first)}")


def unsupported(path: FieldPath, value: str, supported: Iterable[str]) -> FieldError:
    values = sorted(supported)
    listed = ", ".join(map(render_value, values))
    return FieldError(
        path,
        f"Unsupported value: {render_value(value)}: supported values: {listed}"
        f"{did_you_mean(value, values)}",
    )


def forbidden(path: FieldPath, detail: str) -> FieldError:
    return FieldError(path, f"Forbidden: {detail}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean "..."?` with the nearest known name, or nothing if none is near."""
    candidates = {candidate.lower(): candidate for candidate in sorted(known)}
    longest = max(map(len, candidates), default=0)
    if 2 * longest < _NEAR * (len(name) + longest):
        # So long that none can be near, and comparing a text of thousands of letters takes long.
        return ""
    nearest = difflib.get_close_matches(name.lower(), list(candidates), n=1, cutoff=_NEAR)
    return f'; did you mean "{candidates[nearest[0]]}"?' if nearest else ""


def not_covered(found: Iterable[FieldError], reported: Sequence[FieldError]) -> list[FieldError]:
    """Leave out what was found at or below a path that is already reported as wrong.

    A wrong part is replaced by its default before later checks, so what they say of it is noise.
    """
    paths = {error.path for error in reported}
    return [
        error
        for error in found
        if not any(error.path[:end] in paths for end in range(1, len(error.path) + 1))
    ]
