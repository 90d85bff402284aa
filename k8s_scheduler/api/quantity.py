"""Kubernetes quantities, exactly.

Everything is kept in whole nano-units, so that sums of fractions are rounded once, at the end,
and upwards, as the API's own arithmetic does. Floats never touch a quantity.
"""

import re
from functools import lru_cache

NANO = 10**9
_MAX_INT64 = 2**63 - 1
# So much of what is no quantity is said in the error.
_SHOWN = 80

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL_EXPONENT = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>\d*)(?:\.(?P<fraction>\d*))?"
    r"(?P<suffix>[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?",
    re.ASCII,
)
# Far beyond anything that saturates or rounds to nothing, and quick to work with.
_MAX_DIGITS = 1000
# Longer texts are worked out each time: what is remembered takes 16 MiB at most.
_REMEMBERED_CHARACTERS = 32


class QuantityError(ValueError):
    """The text is no quantity."""

    def __init__(self, text: str) -> None:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        super().__init__(
            f"{shown!r} is not a quantity: write a number with an optional suffix, "
            "such as 250m, 1.5, 2k or 512Mi"
        )


def nano(quantity: str | float) -> int:
    """Return the quantity in nano-units; what is finer than nano is rounded away from zero."""
    if isinstance(quantity, str) and len(quantity) > _REMEMBERED_CHARACTERS:
        return _worked_out(quantity)
    return _remembered(quantity)


@lru_cache(maxsize=65536)
def _remembered(quantity: str | float) -> int:
    return _worked_out(str(quantity))


def forget_quantities() -> None:
    """Remember no quantity: those that are still in use are worked out once more."""
    _remembered.cache_clear()


def _worked_out(text: str) -> int:
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise QuantityError(text)
    whole, fraction = match["whole"], match["fraction"] or ""
    if (not whole and not fraction) or len(text) > _MAX_DIGITS:
        raise QuantityError(text)
    digits = int(whole + fraction)
    suffix = match["suffix"] or ""
    multiplier = _BINARY.get(suffix)
    if multiplier is not None:
        exponent = 9 - len(fraction)
        digits *= multiplier
    elif suffix in _DECIMAL_EXPONENT:
        exponent = 9 - len(fraction) + _DECIMAL_EXPONENT[suffix]
    else:
        exponent = 9 - len(fraction) + _bounded_exponent(suffix[1:], text)
    scaled: int = digits * 10**exponent if exponent >= 0 else -(-digits // 10**-exponent)
    if multiplier is not None:
        # The API caps binary quantities, and only those, at what 63 bits hold.
        scaled = min(scaled, _MAX_INT64 * NANO)
    return -scaled if match["sign"] == "-" else scaled


def _bounded_exponent(digits: str, text: str) -> int:
    """Return a decimal exponent; an absurd one is refused before it becomes a huge number."""
    exponent = int(digits)
    if abs(exponent) > 1000:  # far beyond anything a quantity can hold
        raise QuantityError(text)
    return exponent


def whole(nano_units: int) -> int:
    """Return whole units, rounded up: `Quantity.Value`."""
    return _saturate(-(-nano_units // NANO))


def milli(nano_units: int) -> int:
    """Return thousandths, rounded up: `Quantity.MilliValue`."""
    return _saturate(-(-nano_units // 10**6))


def _saturate(value: int) -> int:
    return max(-_MAX_INT64 - 1, min(value, _MAX_INT64))
