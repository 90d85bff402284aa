"""Pods that came to rows or left them, in order: from it counters catch up that are not told.

A pod with terms may concern the sums of every newcomer there is, and one with labels those of
every pod whose terms pick all others. Counters are not told when it comes or goes: it is noted
here, by an id for all pods that count alike (a holder of terms, a label set), and a counter catches
up when it is asked. The log is bounded: a counter that comes too late counts anew.
"""

from array import array
from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
# So few are looked up one by one: usually a pod or two since the last decision.
_FEW: Final = 8


class CountLog:
    """Notes of (id, row, how many pods more), and of ids that are new."""

    # So many notes are kept at least.
    LIMIT: Final = 2048

    def __init__(self) -> None:
        self._ids = array("q")
        self._rows = array("q")
        self._differences = array("q")
        self._first = 0
        # The cursor of a reader that has seen everything.
        self.position = 0
        # When ids were given, as positions, and these ids: they are used again.
        self._births: list[tuple[int, int]] = []

    def born(self, number: int) -> None:
        """Note that an id means something else from now on."""
        self._births.append((self.position, number))

    def note(self, number: int, row: int, difference: int) -> None:
        rows = self._rows
        rows.append(row)
        self._ids.append(number)
        self._differences.append(difference)
        self.position += 1
        if len(rows) > 2 * self.LIMIT:
            for notes in (rows, self._ids, self._differences):
                del notes[: self.LIMIT]
            self._first += self.LIMIT
            self._births = [birth for birth in self._births if birth[0] >= self._first]

    def knows(self, cursor: int) -> bool:
        return cursor >= self._first

    def births_since(self, cursor: int) -> list[tuple[int, int]]:
        births = self._births
        if not births or births[-1][0] < cursor:
            return []
        return [birth for birth in births if birth[0] >= cursor]

    def ids_since(self, cursor: int) -> Iterable[int] | None:
        """Return the ids of the notes since a position; None if some are forgotten."""
        start = cursor - self._first
        return None if start < 0 else self._ids[start:]

    def newest(self, times: Numbers) -> tuple[int, int]:
        """Return the row and the difference of the last note, where a pod counts as many times."""
        return self._rows[-1], self._differences[-1] * times.item(self._ids[-1])

    def weighed(self, start: int, end: int, times: Numbers) -> Iterable[tuple[int, int]]:
        """Return (row, difference) of the notes from one position to another that count.

        Where a pod of an id counts as many times as `times` says.
        """
        first = self._first
        if end - start <= _FEW:
            notes = range(start - first, end - first)
            found = [
                (self._rows[i], self._differences[i] * times.item(self._ids[i])) for i in notes
            ]
            return [note for note in found if note[1]]
        part = slice(start - first, end - first)
        ids = np.frombuffer(self._ids[part], dtype=np.int64)
        counts = times.take(ids) * np.frombuffer(self._differences[part], dtype=np.int64)
        counted = np.flatnonzero(counts)
        rows = np.frombuffer(self._rows[part], dtype=np.int64).take(counted)
        return zip(rows.tolist(), counts.take(counted).tolist(), strict=True)
