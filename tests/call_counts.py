"""How many calls a deed takes: what grows with what is seen without a clock."""

import sys
from collections.abc import Callable


def calls_of(deed: Callable[[], object]) -> int:
    """Return how many functions written in Python are called or resumed meanwhile."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        deed()
    finally:
        sys.setprofile(None)
    return calls
