"""How long nobody scheduled after the leader was taken away."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.chaos.evidence import Done, Evidence
from testbed.chaos.plan import Action

_LEADER_GONE = frozenset({Action.KILL_LEADER, Action.FREEZE_LEADER, Action.STOP_LEADER})
CREATED = 201


# What does not keep another replica from leading.
_HARMLESS = frozenset(
    {
        Action.DELETE_NODE,
        Action.CORDON,
        Action.COMPACT,
        Action.GOOD_RELOAD,
        Action.BAD_RELOAD,
    }
)
# Faults last so long, and what they did to watches some time more.
_AFTERMATH_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Takeover:
    """How one leader went, and how long it took until another bound a pod."""

    action: str
    seconds: float
    disturbed: bool


def find_takeovers(evidence: Evidence) -> list[Takeover]:
    """Return the take-over after each leader that went."""
    times: dict[str, list[float]] = {}
    for entry in evidence.passed:
        if entry.status == CREATED:
            times.setdefault(entry.replica, []).append(entry.ended_at)
    for series in times.values():
        series.sort()
    found = []
    for done in evidence.done:
        if done.action in _LEADER_GONE and done.detail in times:
            firsts = [
                first
                for replica, series in times.items()
                if replica != done.detail and (first := _first_after(series, done.at)) is not None
            ]
            if firsts:
                seconds = min(firsts) - done.at
                disturbed = _is_disturbed(done, seconds, evidence)
                found.append(Takeover(done.action, seconds, disturbed))
    return found


def _is_disturbed(done: Done, seconds: float, evidence: Evidence) -> bool:
    return any(
        other is not done
        and other.action not in _HARMLESS
        and other.ended_at > done.at - _AFTERMATH_SECONDS
        and other.at < done.at + seconds
        for other in evidence.done
    )


def _first_after(series: Sequence[float], at: float) -> float | None:
    position = bisect_right(series, at)
    return series[position] if position < len(series) else None
