"""The names of columns that show amounts, and which of them are read together."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from k8s_scheduler.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

ALLOCATABLE: Final = "allocatable/"
REQUESTED: Final = "requested/"
NON_ZERO: Final = "non_zero/"
POD_COUNT: Final = "pod_count"

# What every node has, in the order of the columns.
NATIVE: Final = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)
_WITH_DEFAULTS: Final = (CPU, MEMORY)
# Up to so many resources are handled together, each by its name. A pod may ask for any number of
# them: no array and no list of names is made for more, and nothing is remembered by their names.
FEW_RESOURCES: Final = 16
# Of the tuples of names that are remembered.
_REMEMBERED: Final = 256

NON_ZERO_PLANE, ALLOCATABLE_PLANE, REQUESTED_PLANE = range(3)
PLANES: Final = {
    NON_ZERO: NON_ZERO_PLANE,
    ALLOCATABLE: ALLOCATABLE_PLANE,
    REQUESTED: REQUESTED_PLANE,
}


@dataclass(frozen=True, slots=True, eq=False)
class Families:
    """Two families of columns that are read together."""

    names: tuple[str, str]
    planes: slice
    # Which of the two is what nodes offer.
    offered: int
    # The families whose columns may be shown; `pods` has one of its own.
    shown: tuple[str, ...]

    def columns(self, resources: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the columns that these resources have in both families."""
        if len(resources) > FEW_RESOURCES:
            return _made_names(self.names, resources)
        return _column_names(self.names, resources)

    def taken_down(self, resources: tuple[str, ...]) -> tuple[str, ...]:
        """Return what to take down of a read: columns, or of many resources all they may be in."""
        if len(resources) > FEW_RESOURCES:
            return (*self.shown, POD_COUNT)
        return _column_names(self.names, resources)


# What pods take with defaults for those that ask for nothing, as scores count it, and what there
# is. There are defaults for cpu and memory alone.
TAKEN_IN_SCORES: Final = Families(
    names=(NON_ZERO, ALLOCATABLE),
    planes=slice(NON_ZERO_PLANE, ALLOCATABLE_PLANE + 1),
    offered=1,
    shown=(NON_ZERO, ALLOCATABLE, REQUESTED),
)
# What there is and what pods request. Of `pods`, that is how many there are.
OFFERED_AND_TAKEN: Final = Families(
    names=(ALLOCATABLE, REQUESTED),
    planes=slice(ALLOCATABLE_PLANE, REQUESTED_PLANE + 1),
    offered=0,
    shown=(ALLOCATABLE, REQUESTED),
)


def is_amount(column: str) -> bool:
    return column == POD_COUNT or column.startswith((ALLOCATABLE, REQUESTED, NON_ZERO))


def resources_of(columns: Iterable[str]) -> tuple[str, ...] | None:
    """Return the resources of some columns, native ones first; None if they are too many to name.

    The same resources come in the same order, whatever the order of the columns.
    """
    found: dict[str, None] = {}
    for column in columns:
        resource = PODS if column == POD_COUNT else column.partition("/")[2]
        if not resource:
            return None
        found[resource] = None
    if len(found) > FEW_RESOURCES:
        return None
    native = [resource for resource in NATIVE if resource in found]
    return (*native, *sorted(resource for resource in found if resource not in NATIVE))


@lru_cache(maxsize=_REMEMBERED)
def _column_names(families: tuple[str, str], resources: tuple[str, ...]) -> tuple[str, ...]:
    return _made_names(families, resources)


def _made_names(families: tuple[str, str], resources: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_column_name(family, r) for family in families for r in resources)


def _column_name(family: str, resource: str) -> str:
    """Return the column that shows a resource's part of a family."""
    if family == ALLOCATABLE:
        return family + resource
    if resource == PODS:
        return POD_COUNT
    if family == NON_ZERO and resource in _WITH_DEFAULTS:
        return family + resource
    return REQUESTED + resource


def wrapped(amount: int) -> int:
    """Return a sum as 64 bits hold it; kube-scheduler's sums wrap around, too."""
    return (amount + 2**63) % 2**64 - 2**63
