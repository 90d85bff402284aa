"""Logs: one line per event on stderr, as text or as JSON, on top of the standard library.

The convention, everywhere: a constant message that names the event, and what it is about as
fields.

    logger.info("Bound pod", extra={"fields": {"pod": key, "node": node}})

No f-strings: a line that is not written must cost nothing, and a message that never varies can be
counted and searched for. On hot paths ask `logger.isEnabledFor` first, so that the fields are not
built either.

    text   2026-01-02T03:04:05.678901Z INFO k8s_scheduler.app "Bound pod" pod="ns/a" node="n1"
    JSON   {"ts":"2026-01-02T03:04:05.678901Z","level":"info","logger":"k8s_scheduler.app",
            "msg":"Bound pod","pod":"ns/a","node":"n1"}

Verbosity is kube-scheduler's `-v`:

    0 to 3    info and above of our own; warnings and above of libraries
    4, 5      also our own debug lines
    6 to 10   also the libraries' debug lines (asyncio, aiohttp, kubernetes …)

Invariants: a line is always exactly one line in JSON; a traceback is a string field there, and
follows its line in text. Formatting never raises. No line leaves without `redaction`, and what
ends the process unforeseen is a line too.
"""

import json
import logging
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, TextIO

import msgspec

from k8s_scheduler.obs.redaction import redact

FORMATS: Final = ("text", "json")
OWN_LOGGER: Final = "k8s_scheduler"

_DEBUG_VERBOSITY: Final = 4
_LIBRARIES_VERBOSITY: Final = 6
# Their debug lines show tokens, whole requests and answers, so they are off at any verbosity.
_TALKATIVE: Final = ("kubernetes.client.rest", "oauthlib", "requests_oauthlib", "urllib3")
# What was there before our own hooks; empty while they are not in place.
_hooks: list[tuple[Any, Any]] = []
# Names that a field may not take in JSON; one that does gets an underscore.
_RESERVED: Final = frozenset({"ts", "level", "logger", "msg", "exc"})
# What the encoder raises for a value it has no form for: cycles, lone surrogates.
_UNENCODABLE: Final = (TypeError, ValueError, RecursionError)


def configure(format: str, verbosity: int, *, stream: TextIO | None = None) -> None:  # noqa: A002  the flag's name
    """Send all logs of the process to stderr in the given form; replaces what was set before."""
    if format not in FORMATS:
        raise ValueError(f'unknown log format "{format}"; one of {", ".join(FORMATS)}')
    reset()
    handler = _Handler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    root = logging.getLogger()
    root.addHandler(handler)
    libraries = verbosity >= _LIBRARIES_VERBOSITY
    root.setLevel(logging.DEBUG if libraries else logging.WARNING)
    own = logging.DEBUG if verbosity >= _DEBUG_VERBOSITY else logging.INFO
    logging.getLogger(OWN_LOGGER).setLevel(own)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.captureWarnings(capture=True)
    _hooks.append((sys.excepthook, threading.excepthook))
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread


def reset() -> None:
    """Undo `configure`: the standard library's own defaults again."""
    root = logging.getLogger()
    for handler in [h for h in root.handlers if isinstance(h, _Handler)]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(logging.WARNING)
    logging.getLogger(OWN_LOGGER).setLevel(logging.NOTSET)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.NOTSET)
    logging.captureWarnings(capture=False)
    while _hooks:
        sys.excepthook, threading.excepthook = _hooks.pop()


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log an uncaught exception as one of our lines: Python's own output is not redacted."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    logging.getLogger(OWN_LOGGER).critical("Uncaught error", exc_info=(kind, error, trace))


def _uncaught_in_thread(arguments: threading.ExceptHookArgs) -> None:
    error = arguments.exc_value
    if error is not None and not isinstance(error, SystemExit):
        _uncaught(arguments.exc_type, error, arguments.exc_traceback)


class _Handler(logging.StreamHandler[TextIO]):
    """Our handler, told from others by its type, so that others are left alone."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without secrets."""
        return redact(super().format(record))


class TextFormatter(logging.Formatter):
    """Lines for people, in the manner of klog: quoted message, then key=value."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with the traceback under it."""
        parts = [
            _timestamp(record.created),
            record.levelname,
            record.name,
            _quote(_message(record)),
        ]
        parts += [f"{key}={_text_value(value)}" for key, value in _fields(record).items()]
        line = " ".join(parts)
        trace = _trace(self, record)
        return f"{line}\n{trace}" if trace else line


class JsonFormatter(logging.Formatter):
    """Lines for machines: one object each."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": _timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": _message(record),
        }
        for key, value in _fields(record).items():
            line[f"{key}_" if key in _RESERVED else key] = value
        trace = _trace(self, record)
        if trace:
            line["exc"] = trace
        try:
            return _to_json(line)
        except _UNENCODABLE:
            return _to_json({key: _encodable(value) for key, value in line.items()})


def _timestamp(created: float) -> str:
    return datetime.fromtimestamp(created, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        # Arguments that do not fit the message are worth a line, not a lost one.
        return f"{record.msg} {record.args}"


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields = getattr(record, "fields", None)
    return {str(key): value for key, value in fields.items()} if isinstance(fields, Mapping) else {}


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    trace = formatter.formatException(record.exc_info) if record.exc_info else ""
    stack = formatter.formatStack(record.stack_info) if record.stack_info else ""
    return "\n".join(part for part in (trace, stack) if part)


def _text_value(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return _to_json(value)
    return _quote(value if isinstance(value, str) else _plain(value))


def _quote(text: str) -> str:
    """Return the text in quotes, on one line, and writable in UTF-8 whatever it holds."""
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted.encode("utf-8", "backslashreplace").decode()


def _plain(value: Any) -> str:
    """Return anything else as one string: collections as JSON, objects as they print."""
    if not isinstance(value, (list, tuple, dict, set, frozenset)):
        return str(value)
    value = _encodable(value)
    return value if isinstance(value, str) else _to_json(value)


def _encodable(value: Any) -> Any:
    try:
        _to_json(value)
    except _UNENCODABLE:
        return repr(value)
    return value


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()
