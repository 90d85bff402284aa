import pytest

from testbed.chaos.plan import WARM_UP_SECONDS, Action, draw_plan
from testbed.proxy.faults import BY_HAND, Fault


def test_the_same_seed_gives_the_same_plan():
    assert draw_plan(7, seconds=180) == draw_plan(7, seconds=180)


def test_another_seed_gives_another_plan():
    assert draw_plan(7, seconds=180) != draw_plan(8, seconds=180)


def test_a_longer_run_begins_as_a_shorter_one():
    short, long = draw_plan(3, seconds=120), draw_plan(3, seconds=600)
    assert long[: len(short)] == short


@pytest.mark.parametrize("seed", range(20))
def test_three_minutes_bring_every_kind_of_action(seed):
    assert {step.action for step in draw_plan(seed, seconds=180)} == set(Action)


@pytest.mark.parametrize("seed", range(5))
def test_steps_are_in_order_and_within_the_time(seed):
    times = [step.at_seconds for step in draw_plan(seed, seconds=300)]
    assert times == sorted(times)
    assert times[0] >= WARM_UP_SECONDS
    assert times[-1] < 300


def test_faults_and_only_faults_have_rules():
    plan = draw_plan(1, seconds=3600)
    assert all(bool(step.rules) == (step.action is Action.FAULTS) for step in plan)
    drawn = {rule.fault for step in plan for rule in step.rules}
    assert drawn == set(Fault) - BY_HAND


def test_a_step_is_described_in_one_line():
    for step in draw_plan(1, seconds=600):
        assert str(step.action) in step.describe()
        assert "\n" not in step.describe()
