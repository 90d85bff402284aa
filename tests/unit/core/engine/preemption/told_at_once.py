"""Victims that plugins tell at once, beside those that judging each pod finds."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from k8s_scheduler.core.engine.preemption.reprieve import Reprieve
from k8s_scheduler.core.framework.departed import Quota
from tests.unit.core.engine.preemption.test_dry_runs_affinity import found_for
from tests.unit.core.engine.preemption.test_reprieve import by_judging

Told = list[Iterable[Quota] | None]


def told_and_judged(
    monkeypatch, story: Callable[[int], Any], seeds: Sequence[int]
) -> tuple[list[Any], list[Any], Told]:
    """Return what is found in each story at once, what by judging, and what plugins told."""
    told: Told = []
    quotas = Reprieve.quotas

    def seen(*args):
        told.append(quotas(*args))
        return told[-1]

    with monkeypatch.context() as patch:
        patch.setattr(Reprieve, "quotas", seen)
        at_once = [found_for(monkeypatch, *story(seed)) for seed in seeds]
    with monkeypatch.context() as patch:
        by_judging(patch)
        judged = [found_for(monkeypatch, *story(seed)) for seed in seeds]
    return at_once, judged, told
