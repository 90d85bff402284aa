"""How much may be done per second: tokens that come back with time, which messages carry.

Unlike a plain token bucket it may be overdrawn by what is already begun, and it can be written
down: it is part of checkpoints.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Allowance:
    """Tokens that come back at a rate; never more than those of one second."""

    rate_per_second: float
    left: float = 0.0
    as_of: float = 0.0

    def at(self, now: float, rate_per_second: float) -> None:
        """Let time pass; a clock that goes back brings nothing."""
        self.rate_per_second = rate_per_second
        grown = max(0.0, now - self.as_of) * rate_per_second
        self.left = min(rate_per_second, self.left + grown)
        self.as_of = max(now, self.as_of)

    @property
    def is_spent(self) -> bool:
        """Whether there is less than a whole token left."""
        return self.left < 1.0

    def spend(self, tokens: float) -> None:
        """Take tokens, more than there are if need be: they are missing later."""
        self.left -= tokens
