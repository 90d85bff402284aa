"""Durations as Go writes them: `15s`, `5m0s`, `1h`, `1.5h`, `100ms`.

Configuration files and flags use this notation, and people copy it from there; inside, a
duration is a float of seconds. Arithmetic is done in whole nanoseconds, as Go does, so that
`0.1s` is one tenth of a second and not a neighbour of it.
"""

import re
from typing import Final

_NANOSECONDS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, the micro sign
    "μs": 1_000,  # U+03BC, the Greek letter, which Go accepts as well
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60 * 1_000_000_000,
    "h": 3600 * 1_000_000_000,
}
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")
# More digits are too long, or finer than a nanosecond; thousands are more than Python reads.
_MOST_DIGITS: Final = 40
_MAXIMUM_NANOSECONDS: Final = 2**63 - 1

# The same notation as a regular expression, to check texts without this module.
DURATION_PATTERN: Final = rf"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)({'|'.join(_NANOSECONDS)}))+)$"


def parse_duration(text: str) -> float:
    """Return the seconds `text` stands for; ValueError says what a duration looks like."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    total, position = 0, 0
    while match := _TERM.match(rest, position):
        whole, fraction, unit = match.groups()
        if unit not in _NANOSECONDS or not (whole or fraction):
            break
        if len(whole.lstrip("0")) > _MOST_DIGITS:
            break
        scale = _NANOSECONDS[unit]
        total += int(whole.lstrip("0") or 0) * scale
        if fraction := (fraction or "")[:_MOST_DIGITS]:
            total += int(fraction) * scale // 10 ** len(fraction)
        position = match.end()
    if not rest or position != len(rest) or total > _MAXIMUM_NANOSECONDS:
        raise ValueError(f'"{text}" is not a duration; write it like "15s", "5m0s" or "1h"')
    return sign * total / 1_000_000_000


def format_duration(seconds: float) -> str:
    """Return the duration as Go prints it: `15s`, `5m0s`, `1h0m0s`, `1.5s`, `250ms`, `0s`."""
    nanoseconds = round(abs(seconds) * 1_000_000_000)
    sign = "-" if seconds < 0 and nanoseconds else ""
    if nanoseconds == 0:
        return "0s"
    for unit, scale in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
        if nanoseconds < scale * 1_000:
            return f"{sign}{_decimal(nanoseconds, scale)}{unit}"
    minutes, rest = divmod(nanoseconds, _NANOSECONDS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, _NANOSECONDS['s'])}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _decimal(value: int, scale: int) -> str:
    whole, fraction = divmod(value, scale)
    if not fraction:
        return str(whole)
    digits = str(fraction).rjust(len(str(scale)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"
