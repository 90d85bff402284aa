"""What plugins need to read the offers of a class: `RowsView.offers` and `RowsView.choices`."""

from k8s_scheduler.core.state.volumes.class_index import NONE, Choices, ClassIndex, Slots
from k8s_scheduler.core.state.volumes.offers import CapacityDemand, StorageDemand, VolumeDemand

__all__ = [
    "NONE",
    "CapacityDemand",
    "Choices",
    "ClassIndex",
    "Slots",
    "StorageDemand",
    "VolumeDemand",
]
