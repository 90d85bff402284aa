"""Waiting for something to become true, with a message that says what did not."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(
    predicate: Callable[[], T],
    timeout_seconds: float = 10.0,
    message: str = "",
    *,
    interval_seconds: float = 0.05,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Return the predicate's first true value; AssertionError with `message` after the time-out.

    An AssertionError or LookupError of the predicate counts as "not yet" and is shown if it stays.
    """
    deadline = clock() + timeout_seconds
    while True:
        seen: object
        try:
            value = predicate()
            if value:
                return value
            seen = value
        except (AssertionError, LookupError) as error:
            seen = error
        if clock() >= deadline:
            raise AssertionError(
                f"not within {timeout_seconds:g} s: {message or predicate}; last seen: {seen!r}"
            )
        sleep(interval_seconds)
