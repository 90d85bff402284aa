"""The held terms that pick a newcomer, as one thing.

A newcomer may be picked by thousands of terms of placed pods. What counts is only how many of them,
and of what weight, are held in each domain of a topology: one sum for each purpose and topology
key. `PickedTerms` names the terms; `questions.TermHolders` asks for one of their sums.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

# Ascending.
Numbers = npt.NDArray[np.int64]


class Purpose(enum.StrEnum):
    """What becomes of terms that pick a newcomer."""

    # Required anti-affinity keeps it away, required affinity likes it. Both are counted.
    REFUSING = "refusing"
    NEEDING = "needing"
    # Preferred affinity and anti-affinity: their weights are added up.
    ATTRACTING = "attracting"
    REPELLING = "repelling"


# What terms have in common that are added up: what becomes of them, and the topology key.
Group: TypeAlias = tuple[Purpose, str]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PickedTerms:
    """Some held terms: the same object is the same terms.

    Usually the same terms are the same object, too, for as long as it is in use.
    """

    # No other terms ever have this number.
    number: int
    # Of each term.
    terms: Numbers
    # By purpose: the topology keys that some node has.
    keys: Mapping[Purpose, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.terms)


NOT_PICKED: Final = PickedTerms(0, np.zeros(0, dtype=np.int64))
