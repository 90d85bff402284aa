"""What a compiled profile says of its plugins."""

from typing import ClassVar

import numpy as np
import pytest

from k8s_scheduler.api.config.types import PluginUse, ResolvedProfile
from k8s_scheduler.core.framework.plugin import Plugin
from k8s_scheduler.core.framework.profile import Profile, compile_profile
from k8s_scheduler.core.framework.registry import Registration
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView, Scores
from k8s_scheduler.core.plugins.default_binder import DefaultBinder
from k8s_scheduler.core.plugins.priority_sort import PrioritySort


class Undecided:
    """A filter and score that does not say whether it judges by group."""

    name: ClassVar = "Judge"
    reasons: ClassVar = ()
    depends_on: ClassVar = ()

    def prepare(self, pod: PodView, rows: RowsView) -> None:
        """Nothing depends on the pod."""

    def filter(self, term: None, rows: RowsView) -> Codes:
        return rows.passed()

    def pre_score(self, pod: PodView, rows: RowsView) -> None:
        """Nothing depends on the pod."""

    def score(self, term: None, rows: RowsView) -> Scores:
        return np.zeros(len(rows), dtype=np.int64)


class ByGroup(Undecided):
    judges_by_group: ClassVar = True


class RowByRow(Undecided):
    judges_by_group: ClassVar = False


def compiled(judge: type[Plugin]) -> Profile:
    resolved = ResolvedProfile(
        scheduler_name="default-scheduler",
        points={
            "queueSort": (PluginUse("PrioritySort"),),
            "filter": (PluginUse("Judge"),),
            "score": (PluginUse("Judge", 1),),
            "bind": (PluginUse("DefaultBinder"),),
        },
    )
    kinds = {"PrioritySort": PrioritySort, "Judge": judge, "DefaultBinder": DefaultBinder}
    return compile_profile(resolved, {name: Registration(kind) for name, kind in kinds.items()})


@pytest.mark.parametrize(
    ("judge", "by_group"), [(ByGroup, True), (RowByRow, False), (Undecided, False)]
)
def test_a_plugin_judges_by_group_only_if_it_says_so(
    judge: type[Plugin], *, by_group: bool
) -> None:
    profile = compiled(judge)
    (filtering,), (scoring,) = profile.filters, profile.scores
    assert (filtering.by_group, scoring.by_group) == (by_group, by_group)
