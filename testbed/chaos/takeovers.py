"""How long nobody scheduled after the leader was taken away."""

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
    """How one leader went, and how long it took until the next bound a pod."""

    action: str
    seconds: float
    disturbed: bool


def find_takeovers(evidence: Evidence) -> list[Takeover]:
    """Return the take-over after each leader that went."""
    bound = [entry for entry in evidence.passed if entry.status == CREATED]
    found = []
    for done in evidence.done:
        if done.action not in _LEADER_GONE or not done.was_done:
            continue
        ended_at = _end_of(done, evidence)
        firsts = [
            entry.ended_at
            for entry in bound
            if (entry.replica != done.detail and entry.ended_at > done.at)
            # It is started again, and may be the next leader.
            or (entry.replica == done.detail and entry.at > ended_at)
        ]
        if firsts:
            seconds = min(firsts) - done.at
            found.append(Takeover(done.action, seconds, _is_disturbed(done, seconds, evidence)))
    return found


def _end_of(done: Done, evidence: Evidence) -> float:
    """Return when the process that was meant was seen to be gone."""
    ends = (end.at for end in evidence.ends if end.process.startswith(f"{done.detail}-"))
    return min((at for at in ends if at >= done.at), default=float("inf"))


def _is_disturbed(done: Done, seconds: float, evidence: Evidence) -> bool:
    return any(
        other is not done
        and other.action not in _HARMLESS
        and other.ended_at > done.at - _AFTERMATH_SECONDS
        and other.at < done.at + seconds
        for other in evidence.done
    )
