"""How state machines are driven: how long, and by which rules."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine


class _AllRules:
    """Leaves no rule out."""

    @staticmethod
    def is_enabled(name: Any) -> bool:
        return True


class Machine(RuleBasedStateMachine):
    """A machine whose every run may use every rule.

    By itself hypothesis leaves about half of them out, others each time. Nearly every story here
    needs most of them: pods, attempts, an end of these, time. If a later hypothesis picks its rules
    in another way this has no effect, and as many runs find less.
    """

    def __init__(self) -> None:
        super().__init__()
        rules: Any = self._rules_strategy
        rules.enabled_rules_strategy = st.just(_AllRules())


def paced(*, times: float, steps: int) -> settings:
    """Return settings for so many times the profile's examples, each of at most so many steps."""
    profile = settings()
    return settings(
        profile, max_examples=int(times * profile.max_examples), stateful_step_count=steps
    )
