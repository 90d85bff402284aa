"""What running a profile's plugins gives: the answers of PreFilter, of filters and of scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.framework.views.base import Codes, Scores
from k8s_scheduler.core.state.delta import PlacedPod
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.rows import NodeRow

# By row: pods that are promised room there and count for the pod in question.
Nominated = Mapping[NodeRow, Sequence[PlacedPod]]


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """What PreFilter found out before any node was looked at.

    `rejection`: no node can do. `names`: only these nodes can, says `narrowed_by`.
    """

    state: CycleState = field(default_factory=CycleState)
    rejection: Verdict | None = None
    names: frozenset[NodeName] | None = None
    narrowed_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filtered:
    """What the filters said: a code for each row asked about, and the rows that passed."""

    codes: Codes
    feasible: Rows
    before: PreFiltered
    # The code of rows that no node set holds; -1 if there is no such set.
    outside_code: int = -1
    # How many rows have each code, worked out on demand.
    _counts: list[tuple[int, int]] = field(default_factory=list, compare=False)

    def counts(self) -> list[tuple[int, int]]:
        """Return (code, number of rows) for the codes that were given, 0 for those that passed."""
        if not self._counts and len(self.codes):
            counts = np.bincount(self.codes)
            found = np.flatnonzero(counts)
            self._counts.extend(zip(found.tolist(), counts[found].tolist(), strict=True))
        return self._counts

    @property
    def pre_filter(self) -> Verdict | None:
        """Why no node can do, if that was clear from the start."""
        return self.before.rejection


@dataclass(frozen=True, slots=True)
class Scored:
    """The weighted scores of each feasible row: in total, and by the plugins not skipped."""

    totals: Scores
    # One number where all rows have the same.
    _parts: Mapping[str, Scores | int]

    @classmethod
    def of(cls, profile: Profile, parts: Mapping[int, Scores | int], rows: int) -> "Scored":
        """Add up the weighted scores of so many rows, by their places among the profile's."""
        by_plugin = {profile.scores[index].name: parts[index] for index in sorted(parts)}
        totals = np.zeros(rows, dtype=np.int64)
        for part in by_plugin.values():
            totals += part
        return cls(totals, by_plugin)

    @property
    def by_plugin(self) -> Mapping[str, Scores]:
        return {
            name: np.full(len(self.totals), part, dtype=np.int64) if isinstance(part, int) else part
            for name, part in self._parts.items()
        }
