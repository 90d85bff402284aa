"""What kept evaluations, the variants of their specs and row columns take, by walking them.

Each is measured without the others: row columns may be used by many evaluations, and a spec has
many of them. What belongs to the state of the cluster, to profiles or to the process counts for
nothing: it is there anyway.
"""

from collections.abc import Iterable
from typing import Final

from k8s_scheduler.api.meta import ClusterObject
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.metering.point_meter import PointMeter
from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.profile import FilterStep, Profile, ScoreStep
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import Questions
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from k8s_scheduler.core.state.news.facts import FactLog
from k8s_scheduler.core.state.terms.held_terms import PodTerm
from k8s_scheduler.core.state.volumes.user import VolumeUser
from k8s_scheduler.lib.sizes import Sizer

# Modules whose objects are the state of the cluster, or metrics.
_STATE: Final = ("k8s_scheduler.core.state.", "k8s_scheduler.obs.")
# Counters live as long as an evaluation goes by them.
_COUNTERS: Final = PodCounter.__module__
# What is defined there, and may belong to evaluations alone.
_OWNED: Final = (FactLog, PodTerm, VolumeUser)
_SHARED: Final = (
    ClusterObject,
    Declarations,
    FilterStep,
    Node,
    Pod,
    PointMeter,
    Profile,
    Questions,
    Runtime,
    ScoreStep,
    VerdictTable,
)
# By name, because these modules use this one: each is measured on its own.
_MEASURED: Final = ("KeptEvaluation", "PartialShape", "RowColumnPool", "RowColumns")
# An entry of a dict with its key, in the maps that hold an evaluation or the variants of a spec.
ENTRY_BYTES: Final = 400


def _is_shared(kind: type) -> bool:
    if issubclass(kind, _SHARED) or kind.__name__ in _MEASURED:
        return True
    if kind.__module__ == _COUNTERS or issubclass(kind, _OWNED):
        return False
    return kind.__module__.startswith(_STATE)


_sizer: Final = Sizer(_is_shared)


def size_of(made: object, *, apart_from: Iterable[object] = ()) -> int:
    """Return the bytes that an evaluation, variants or row columns take of its own."""
    return ENTRY_BYTES + _sizer.measure(made, apart_from=apart_from)


def size_of_questions(questions: Questions) -> int:
    """Return the bytes that the questions about a spec take."""
    return _sizer.measure(questions)
