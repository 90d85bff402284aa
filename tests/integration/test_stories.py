"""Some of the stories of `make stories`: what holds a pod back changes, and both say so."""

from collections.abc import Iterator

import pytest

from testbed.stories.library import STORIES
from testbed.stories.schedulers import Pair, both_running
from testbed.stories.telling import Teller

TOLD = (
    "a label lets a pod see that it is too large",
    "a claim comes, and is not bound",
    "a taint on the only node, and room behind it",
)


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with both_running() as found:
        yield found


@pytest.mark.parametrize("name", TOLD)
def test_a_pod_that_waits_is_told_what_kube_scheduler_tells_it_and_as_soon(pair, name):
    (story,) = [story for story in STORIES if story.name == name]
    told = Teller(pair.bed, story).tell()
    assert [step for step in told if step.problem] == []
    # It was told something new at each step that kube-scheduler took for news.
    texts = [
        step.ours["p"] for step, after in zip(told[1:], story.steps, strict=True) if after.renewed
    ]
    assert len({told[0].ours["p"], *texts}) == len(texts) + 1


def test_there_are_forty_stories():
    assert len({story.name for story in STORIES}) >= 40
    assert all(any(step.renewed for step in story.steps) for story in STORIES)
