"""What plugins name when they ask a view for something, and what it hands them.

These types belong to the state. Plugins import them from here: what is not listed is none of their
business, and the state can be rebuilt behind it.
"""

from k8s_scheduler.core.state.amounts.kept import Block, RowFormula
from k8s_scheduler.core.state.amounts.names import (
    FEW_RESOURCES,
    OFFERED_AND_TAKEN,
    TAKEN_IN_SCORES,
    wrapped,
)
from k8s_scheduler.core.state.counts.pod_counter import Crowd, PodCounter
from k8s_scheduler.core.state.counts.questions import SelectedPods, TermHolders, WeighedPods
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.core.state.terms.held_terms import PodTerm, TermKind
from k8s_scheduler.core.state.terms.picked_terms import PickedTerms, Purpose
from k8s_scheduler.core.state.volumes.handles import driver_of_claim, driver_of_disk, unique_name

__all__ = (
    "FEW_RESOURCES",
    "OFFERED_AND_TAKEN",
    "TAKEN_IN_SCORES",
    "Block",
    "Crowd",
    "NodeRow",
    "PickedTerms",
    "PodCounter",
    "PodTerm",
    "Purpose",
    "RowFormula",
    "SelectedPods",
    "TermHolders",
    "TermKind",
    "WeighedPods",
    "driver_of_claim",
    "driver_of_disk",
    "unique_name",
    "wrapped",
)
