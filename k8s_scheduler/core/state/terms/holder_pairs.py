"""Which holder has which terms, and how often, as columns: sums over all of them are one pass."""

from array import array
from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

_FIRST_CAPACITY: Final = 64
# The columns are made anew once so many of their entries, and most of them, are of no use.
_UNUSED: Final = 1024
_NOWHERE: Final = np.zeros(0, dtype=np.int64)


class HolderPairs:
    """(holder, place of a term, how often), in no particular order."""

    def __init__(self) -> None:
        self._lay_out(_FIRST_CAPACITY)
        # By holder: where its pairs are.
        self._entries: dict[int, Numbers] = {}

    def _lay_out(self, capacity: int) -> None:
        self._holders = np.zeros(capacity, dtype=np.int64)
        self._places = np.zeros(capacity, dtype=np.int64)
        # 0 where there is no pair.
        self._times = np.zeros(capacity, dtype=np.int64)
        self._size = 0
        # Not a list, which would keep an object for each of them.
        self._free = array("q")

    def add(self, holder: int, times: Mapping[int, int]) -> None:
        """Take in a holder: place of a term -> how often."""
        count = len(times)
        reused = self._free[-count:]
        del self._free[-count:]
        new = count - len(reused)
        self._reserve(self._size + new)
        entries = np.array([*reused, *range(self._size, self._size + new)], dtype=np.int64)
        self._size += new
        self._write(holder, entries, np.fromiter(times.keys(), np.int64, count))
        self._times[entries] = np.fromiter(times.values(), np.int64, count)

    def _write(self, holder: int, entries: Numbers, places: Numbers) -> None:
        self._entries[holder] = entries
        self._holders[entries] = holder
        self._places[entries] = places

    def remove(self, holder: int) -> None:
        entries = self._entries.pop(holder)
        self._times[entries] = 0
        self._free.frombytes(entries.tobytes())
        if len(self._free) > max(_UNUSED, self._size // 2):
            self._make_anew()

    def of(self, holder: int) -> tuple[Numbers, Numbers]:
        """Return the places of a holder's terms, and how often it has each; none if it is gone."""
        entries = self._entries.get(holder, _NOWHERE)
        return self._places.take(entries), self._times.take(entries)

    def holders_of(self, place: int) -> dict[int, int]:
        used = slice(0, self._size)
        found = np.flatnonzero((self._places[used] == place) & (self._times[used] > 0))
        holders, times = self._holders.take(found).tolist(), self._times.take(found).tolist()
        return dict(zip(holders, times, strict=True))

    def move(self, after: Numbers) -> None:
        """Take note that the places of terms have become others."""
        # Those that no pair is about may be anywhere.
        self._places = after.take(self._places, mode="clip")

    def sums(self, weights: Numbers, size: int) -> Numbers:
        """Return, by holder and for so many of them, the sum of the weights of its terms."""
        used = slice(0, self._size)
        weighed = self._times[used] * weights.take(self._places[used], mode="clip")
        counted = np.flatnonzero(weighed)
        holders = self._holders[used].take(counted)
        # In floating point, which is exact for as many as there can be.
        return np.bincount(holders, weighed.take(counted), minlength=size).astype(np.int64)

    def _reserve(self, size: int) -> None:
        more = size - len(self._times)
        if more > 0:
            nothing = np.zeros(max(more, len(self._times)), dtype=np.int64)
            self._holders = np.append(self._holders, nothing)
            self._places = np.append(self._places, nothing)
            self._times = np.append(self._times, nothing)

    def _make_anew(self) -> None:
        known = {holder: self.of(holder) for holder in self._entries}
        self._entries = {}
        self._lay_out(max(_FIRST_CAPACITY, sum(len(places) for places, _ in known.values())))
        for holder, (places, times) in known.items():
            entries = np.arange(self._size, self._size + len(places))
            self._size += len(places)
            self._write(holder, entries, places)
            self._times[entries] = times
