"""How often evaluations that are kept could be used, and why not."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """Counts since the start; by reason where there is one."""

    # Questions by pods whose shape was asked about before, and those that were answered from what
    # is kept.
    repeated: int = 0
    answered: int = 0
    # Questions by pods whose shape was new.
    new: int = 0
    # Of these, those that were answered with what is kept of their partial shape.
    partial: int = 0
    made: int = 0
    # Evaluations that had to be made anew, shapes that can't be kept, and those that had to go.
    renewed: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    dropped: int = 0

    def add(self, other: "Tally") -> None:
        self.repeated += other.repeated
        self.answered += other.answered
        self.new += other.new
        self.partial += other.partial
        self.made += other.made
        self.dropped += other.dropped
        for mine, theirs in ((self.renewed, other.renewed), (self.refused, other.refused)):
            for reason, count in theirs.items():
                mine[reason] = mine.get(reason, 0) + count

    def summary(self) -> str:
        """Return all of it in one line."""
        share = self.answered / self.repeated if self.repeated else 0.0
        return (
            f"{self.new} new questions, {self.repeated} repeated ones, "
            f"{self.answered} of them ({share:.1%}) answered from the cache; "
            f"{self.partial} of the new ones with what is kept of their kin; "
            f"{self.made} evaluations made, {_listed(self.renewed)} renewed, "
            f"{_listed(self.refused)} not kept, {self.dropped} dropped"
        )


def _listed(reasons: dict[str, int]) -> str:
    total = sum(reasons.values())
    if not total:
        return "0"
    listed = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    return f"{total} ({listed})"


class NotKeptError(Exception):
    """What plugins said can't be kept, or not any longer; the text is a reason for metrics."""


def count_error(reasons: dict[str, int], error: Exception) -> None:
    """Count an error under its reason."""
    reason = str(error) if isinstance(error, NotKeptError) else "plugin_error"
    reasons[reason] = reasons.get(reason, 0) + 1
