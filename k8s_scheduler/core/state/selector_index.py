"""Many selectors at once: which of them pick given labels.

Asking thousands of selectors one by one takes milliseconds, and one tenant's selectors may pick the
pods of all others. So requirements are counted instead: each selector has a number of requirements
that labels without any pair leave unmet, and a pair changes the numbers of those selectors alone
that name its key or value. A selector with no unmet requirement left picks the labels.
"""

from collections.abc import Hashable, Mapping
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.selectors.labels import EXISTS, IN, NOT_IN, Requirement, Requirements
from k8s_scheduler.lib.hollow import compact

Numbers = npt.NDArray[np.int64]
_Key = TypeVar("_Key", bound=Hashable)

# More than any selector has requirements.
_NEVER: Final = 1 << 40
_FIRST_CAPACITY: Final = 64
# A requirement with more values is asked itself, instead of being found by each of them.
_MANY_VALUES: Final = 64


class Differences:
    """By place: a difference; as arrays, once they are to be added up."""

    __slots__ = ("_arrays", "_by_place")

    def __init__(self) -> None:
        self._by_place: dict[int, int] = {}
        self._arrays: tuple[Numbers, Numbers] | None = None

    def __bool__(self) -> bool:
        return bool(self._by_place)

    def add(self, place: int, difference: int) -> None:
        self._by_place[place] = self._by_place.get(place, 0) + difference
        self._arrays = None

    def drop(self, place: int) -> None:
        if self._by_place.pop(place, None) is not None:
            self._by_place = compact(self._by_place)
            self._arrays = None

    @property
    def places(self) -> Numbers:
        """The places, each once. Do not write to it."""
        return self._as_arrays()[0]

    def apply_to(self, numbers: Numbers) -> None:
        places, differences = self._as_arrays()
        numbers[places] += differences

    def _as_arrays(self) -> tuple[Numbers, Numbers]:
        if self._arrays is None:
            size = len(self._by_place)
            self._arrays = (
                np.fromiter(self._by_place.keys(), np.int64, size),
                np.fromiter(self._by_place.values(), np.int64, size),
            )
        return self._arrays


class SelectorIndex:
    """Selectors by place: small numbers that the caller gives, and gives again."""

    def __init__(self) -> None:
        self._unmet: Numbers = np.full(_FIRST_CAPACITY, _NEVER)
        self._by_key: dict[str, Differences] = {}
        self._by_pair: dict[tuple[str, str], Differences] = {}
        # By key, then by place: requirements with many values.
        self._long: dict[str, dict[int, list[Requirement]]] = {}

    def put(self, place: int, requirements: Requirements | None) -> None:
        """Take in a selector; None never picks anything."""
        if place >= len(self._unmet):
            grown = np.full(max(place + 1, 2 * len(self._unmet)), _NEVER)
            grown[: len(self._unmet)] = self._unmet
            self._unmet = grown
        if requirements is None:
            self._unmet[place] = _NEVER
            return
        unmet = 0
        for requirement in requirements:
            unmet += requirement.operator in (IN, EXISTS)
            self._file(place, requirement)
        self._unmet[place] = unmet

    def drop(self, place: int, requirements: Requirements | None) -> None:
        """Let a selector go; it has to be the one that was put there."""
        self._unmet[place] = _NEVER
        for requirement in requirements or ():
            key = requirement.key
            _drop(self._by_key, key, place)
            for value in requirement.values:
                _drop(self._by_pair, (key, value), place)
            asked = self._long.get(key)
            if asked is not None:
                asked.pop(place, None)
                if not asked:
                    del self._long[key]
        self._by_key, self._by_pair = compact(self._by_key), compact(self._by_pair)

    def unmet(self, labels: Mapping[str, str], size: int) -> Numbers:
        """Return how many requirements of each of so many selectors the labels do not meet."""
        found = self._unmet[:size].copy()
        for key, value in labels.items():
            by_key, by_pair = self._by_key.get(key), self._by_pair.get((key, value))
            if by_key is not None:
                by_key.apply_to(found)
            if by_pair is not None:
                by_pair.apply_to(found)
            for place, requirements in self._long.get(key, _NO_SELECTORS).items():
                for requirement in requirements:
                    if value in requirement.values:
                        found[place] += -1 if requirement.operator == IN else 1
        return found

    def _file(self, place: int, requirement: Requirement) -> None:
        """Let a requirement be found by what may change whether it is met."""
        key, operator, values = requirement.key, requirement.operator, requirement.values
        if operator not in (IN, NOT_IN):
            difference = -1 if operator == EXISTS else 1
            self._by_key.setdefault(key, Differences()).add(place, difference)
        elif len(values) > _MANY_VALUES:
            self._long.setdefault(key, {}).setdefault(place, []).append(requirement)
        else:
            difference = -1 if operator == IN else 1
            for value in dict.fromkeys(values):
                self._by_pair.setdefault((key, value), Differences()).add(place, difference)


_NO_SELECTORS: Final[Mapping[int, list[Requirement]]] = {}


def _drop(where: dict[_Key, Differences], key: _Key, place: int) -> None:
    found = where.get(key)
    if found is not None:
        found.drop(place)
        if not found:
            del where[key]
