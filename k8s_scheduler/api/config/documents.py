"""The documents of a configuration file: kube-scheduler's, and beside it perhaps our own.

A document is recognised by its `kind`, not by its place. Each must say its type; each kind may
stand in a file once.
"""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from k8s_scheduler.api.config.decode import decode
from k8s_scheduler.api.config.extras import (
    EXTRAS_API_VERSION,
    EXTRAS_KIND,
    SchedulerExtras,
    extras_errors,
)
from k8s_scheduler.api.config.field_errors import FieldError
from k8s_scheduler.api.config.types import API_VERSION, KIND
from k8s_scheduler.api.config.yaml_positions import MAXIMUM_CHARACTERS, Document, parse_yaml
from k8s_scheduler.lib.bounded_files import TooLongError, read_bounded

_SEPARATOR: Final = re.compile(r"^---.*$", re.MULTILINE)
# Comments beside our own document may name it too.
_MAXIMUM_NAMED: Final = 3
# Where a mistake makes it doubtful which ConfigMap is meant: in the type, the field, or all of it.
_PLACE: Final = ((), ("apiVersion",), ("kind",), ("lastGood",))
_RIGHT: Final = f'"apiVersion: {API_VERSION}" and "kind: {KIND}"'
_BOTH: Final = f"one {KIND} and at most one {EXTRAS_KIND}"


@dataclass(frozen=True, slots=True)
class Documents:
    """What a file holds; `main` None if it is no configuration at all.

    `errors` are of the file as a whole and of the types its documents say they have.
    """

    main: Document | None
    extras: Document | None
    errors: list[FieldError]


def read_documents(path: Path) -> Documents:
    try:
        return parse_documents(read_text(path))
    except UnreadableTextError as error:
        return _unusable(FieldError((), str(error)))


def parse_documents(text: str) -> Documents:
    documents, errors = parse_yaml(text)
    documents = [document for document in documents if document.value is not None]
    if errors and not documents:
        return _unusable(*errors)
    if not documents:
        return _unusable(FieldError((), f"is empty; it must say {_RIGHT}"))
    extras = [document for document in documents if _is_extras(document.value)]
    mains = [document for document in documents if not _is_extras(document.value)]
    if len(extras) > 1 or len(mains) > 1:
        line = (extras if len(extras) > 1 else mains)[1].line_of(())
        message = f"holds {len(documents)} documents; a file holds {_BOTH}"
        return _unusable(FieldError((), message, line=line))
    if not mains:
        message = f"holds no {KIND} beside its {EXTRAS_KIND}; one document must say {_RIGHT}"
        return _unusable(FieldError((), message))
    (main,) = mains
    wrong = _type_errors(main, API_VERSION, KIND)
    if _is_something_else(main.value):
        return _unusable(*(errors or _placed(wrong, main)))
    errors = errors + wrong
    if extras:
        errors += _placed(_type_errors(extras[0], EXTRAS_API_VERSION, EXTRAS_KIND), extras[0])
    return Documents(main, extras[0] if extras else None, errors)


def kept_in(text: str) -> str:
    """Return what `lastGood.configMap` says, whatever else is wrong with the file; empty: nothing.

    It is needed when the file is wrong. So nothing but the place itself has to be right: not the
    document beside ours, and not the other fields of ours. Documents are told apart by their lines
    `---`, since a broken one may keep a parser from seeing the next. Only a few are parsed, those
    that name our kind: each has the whole file's allowance of values, and a file with thousands
    must not hold up the start.
    """
    named = [part for part in _SEPARATOR.split(text) if EXTRAS_KIND in part]
    for part in named[:_MAXIMUM_NAMED]:
        documents, errors = parse_yaml(part)
        if len(documents) != 1 or not _is_extras(documents[0].value):
            continue
        extras, wrong = decode(SchedulerExtras, documents[0].value, ())
        errors += _type_errors(documents[0], EXTRAS_API_VERSION, EXTRAS_KIND)
        errors += wrong + extras_errors(extras)
        if not any(error.path[:1] in _PLACE for error in errors):
            return extras.last_good.config_map
    return ""


def _unusable(*errors: FieldError) -> Documents:
    return Documents(None, None, list(errors))


def _placed(errors: list[FieldError], document: Document) -> list[FieldError]:
    return [replace(e, line=e.line or document.line_of(e.path)) for e in errors]


def _is_extras(value: Any) -> bool:
    return isinstance(value, dict) and value.get("kind") == EXTRAS_KIND


def _is_something_else(value: Any) -> bool:
    """Return whether the document was never meant to be this configuration."""
    if not isinstance(value, dict):
        return True
    version, kind = str(value.get("apiVersion", API_VERSION)), value.get("kind", KIND)
    return kind != KIND or version.partition("/")[0] != API_VERSION.partition("/")[0]


def _type_errors(document: Document, version: str, kind: str) -> list[FieldError]:
    value = document.value
    if not isinstance(value, Mapping):
        return [FieldError((), f"must be a mapping that says {_RIGHT}")]
    errors = []
    for field, right in (("apiVersion", version), ("kind", kind)):
        given = value.get(field)
        if given is None:
            errors.append(FieldError((field,), f'Required value: must be "{right}"'))
        elif given != right:
            errors.append(FieldError((field,), f'Invalid value: "{given}": must be "{right}"'))
    return errors


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
