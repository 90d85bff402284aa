"""How much may be done per second: tokens that come back with time, which messages carry.

Unlike a plain token bucket it may be overdrawn by what is already begun, and it can be written
down: it is part of checkpoints.
"""

from dataclasses import dataclass, field
from typing import Final

from k8s_scheduler.core.messages.checkpoint import RenewalsEntry

# A judgement of 5,000 nodes costs half a millisecond: these are 5 % of a core at most.
JUDGED_PER_SECOND: Final = 100


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
        return self.left < 1.0

    def spend(self, tokens: float) -> None:
        """Take tokens, more than there are if need be: they are missing later."""
        self.left -= tokens


@dataclass(slots=True)
class RenewalAllowances:
    """How many parked pods may be judged anew, and how many told what holds them back now."""

    judgements: Allowance = field(default_factory=lambda: Allowance(JUDGED_PER_SECOND))
    tellings: Allowance = field(default_factory=lambda: Allowance(0.0))

    def entry(self) -> RenewalsEntry:
        judgements, tellings = self.judgements, self.tellings
        return RenewalsEntry(judgements.left, judgements.as_of, tellings.left, tellings.as_of)

    def restore(self, entry: RenewalsEntry | None) -> None:
        if entry is not None:
            self.judgements.left, self.judgements.as_of = entry.judgements, entry.judgements_at
            self.tellings.left, self.tellings.as_of = entry.tellings, entry.tellings_at
