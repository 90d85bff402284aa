"""When a step of a story is over, and what is wrong with it if it is."""

import pytest

from testbed.stories.library import STORIES
from testbed.stories.stage import OURS, THEIRS
from testbed.stories.story import Step, Story
from testbed.stories.telling import Teller

BEFORE = {THEIRS: {"p": "old"}}


def problem(theirs, ours, *, now=10.0, changed=(0.0, 0.0), renewed=True):
    """Judge a step that was done at 0: when each side last said something else."""
    teller = Teller(None, Story("s", pods={"p": {}}, steps=[]))
    step = Step("something happens", lambda stage: stage, renewed=renewed)
    said = {THEIRS: {"p": theirs}, OURS: {"p": ours}}
    times = dict(zip((THEIRS, OURS), changed, strict=True))
    return teller._problem(step, said, BEFORE, now=now, done=0.0, changed=times)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (problem("new", "new", changed=(1.0, 2.5)), None),
        (problem("new", "new", changed=(3.0, 0.5)), None),
        (problem("new", "new", now=2.6, changed=(1.0, 2.5)), ""),
        (problem("new", "new", changed=(1.0, 3.5)), "2.5 s later than kube-scheduler"),
        (problem("new", "other", changed=(1.0, 1.0)), "it says something else"),
        (problem("new", "old", now=2.0, changed=(1.0, 0.0)), ""),
        (problem("old", "new"), ""),
        (problem("old", "new", now=21.0), "kube-scheduler says nothing new"),
        (problem("", "new", now=21.0), "kube-scheduler says nothing new"),
        (problem("old", "new", now=1.9, renewed=False), ""),
        (problem("old", "new", renewed=False), None),
        (
            problem("new", "new", renewed=False),
            "kube-scheduler was not expected to try the pods again, and did",
        ),
    ],
)
def test_what_is_wrong_with_a_step(found, expected):
    assert found == expected


def test_every_step_that_only_we_take_for_news_is_followed_by_one_that_compares():
    for story in STORIES:
        if not story.steps[-1].renewed:
            pytest.fail(f"{story.name} ends with a step that compares nothing")
