"""Bugs that were put in are found: which seed finds which, and by which rule."""

import pytest

from tests.simulation.planted import PLANTS, planted
from tests.simulation.run import simulate

# A seed that finds it, by the rule that it is meant to break.
FOUND_BY = {
    "barrier_by_lease": (3, "nothing decided before the barrier"),
    "condition_overtakes": (30, "conditions tell what happened"),
    "double_assume": (1, "no node overfilled"),
    "dropped_on_requeue": (1, "no pod lost"),
    "early_release": (21, "released after the drain"),
    "equal_version_is_equal": (11, "no pod lost"),
    "event_without_bind": (3, "events tell what happened"),
    "late_lease": (2, "no write after the deadline"),
    "lost_delete": (33, "no pod lost"),
    "missing_barrier": (1, "nothing decided before the barrier"),
    "overtaken_versions": (74, "caches follow a restore"),
    "rebind_after_504": (56, "conditions tell what happened"),
    "set_back_ignored": (89, "no pod lost"),
    "stolen_lease": (2, "two leaders never both write"),
    "undone_binding_ignored": (86, "no pod lost"),
    "uncounted_renewal": (2, "two leaders never both write"),
    "unreserve_on_500": (66, "no second node while in doubt"),
    "unreserve_on_unknown": (20, "no second node while in doubt"),
    "wrong_resume": (106, "caches follow a restore"),
}


def test_every_planted_bug_has_its_seed_and_not_a_late_one():
    assert set(FOUND_BY) == set(PLANTS)
    assert max(seed for seed, _ in FOUND_BY.values()) <= 120


@pytest.mark.parametrize("bug", sorted(PLANTS))
def test_a_planted_bug_is_found(bug):
    seed, rule = FOUND_BY[bug]
    with planted(bug):
        result = simulate(seed)
    assert rule in {violation.rule for violation in result.violations}
    assert f"FIRST_SEED={seed}" in result.replay
