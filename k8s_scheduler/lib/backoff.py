"""Exponential backoff with jitter. Randomness comes in from outside, so tests can fix it."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Delays that double from `initial_seconds` to `maximum_seconds`, each stretched by jitter."""

    initial_seconds: float
    maximum_seconds: float
    factor: float = 2.0
    jitter: float = 1.0
    uniform: Callable[[], float] = random.random
    _next: float = field(init=False)

    def __post_init__(self) -> None:
        self._next = self.initial_seconds

    def next_seconds(self) -> float:
        """Return the next delay: between the base and (1 + jitter) times the base."""
        base = self._next
        self._next = min(self._next * self.factor, self.maximum_seconds)
        return min(base * (1.0 + self.jitter * self.uniform()), self.maximum_seconds)

    def reset(self) -> None:
        self._next = self.initial_seconds
