"""Takes secrets out of what is written: the second line of defence.

The first line is that no code logs one: tokens, keys and passwords stay out of messages, fields and
`repr`s. But errors of libraries and tracebacks quote the input that they fail on, so every log line
goes through here: what looks like a secret, and what is known to be one (`conceal`), is replaced by
a word that says so.
"""

import re
from collections import deque
from typing import Final

REDACTED: Final = "<redacted>"

# Shorter ones would take half of every line with them.
_SHORTEST: Final = 6
_MOST: Final = 32
_known: deque[str] = deque(maxlen=_MOST)

_QUOTE: Final = r"""\\*["']?"""
_NAMES: Final = r"(?:token|password|passwd|secret|client-?key-?data|authorization)"
_VALUE: Final = r"""(?!<redacted>|bearer\b|basic\b)[^\s"',;\\}]{6,}"""
# None of these may backtrack: users choose the names of pods, which are in log lines.
_PATTERNS: Final = (
    # A private key, whole or cut off; line breaks may be escaped.
    (
        re.compile(
            r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----"
            r"(?:.{0,8192}?-----END [A-Z ]{0,30}-----|[^\"]*)",
            re.DOTALL,
        ),
        REDACTED,
    ),
    # A header's value; short words are prose ("bearer token").
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{12,}", re.IGNORECASE), rf"\1 {REDACTED}"),
    # JSON web tokens, wherever they are.
    (re.compile(r"(?<![\w-])eyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?"), REDACTED),
    # https://user:password@host; the last @ counts, as it does when connecting.
    (re.compile(r"(?<=://)[^/\s\"'<>\\]+@"), f"{REDACTED}@"),
    # token: value, "client-key-data": "value", password=value
    (
        re.compile(rf"({_NAMES}{_QUOTE}\s*[:=]\s*{_QUOTE}){_VALUE}", re.IGNORECASE),
        rf"\1{REDACTED}",
    ),
)


# Without one of these no pattern can match; most lines have none.
_MARKS: Final = (
    *("private key", "bearer", "basic", "eyj", "://"),
    *("token", "passw", "secret", "key", "authorization"),
)


def conceal(secret: str) -> None:
    """Never write this; the last few that were told are known."""
    if len(secret) >= _SHORTEST and secret not in _known:
        _known.append(secret)


def redact(text: str) -> str:
    for secret in _known:
        if secret in text:
            text = text.replace(secret, REDACTED)
    lowered = text.lower()
    if any(mark in lowered for mark in _MARKS):
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
    return text
