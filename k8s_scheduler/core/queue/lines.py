"""A heap whose members stand in lines, some of which may be held back.

    push ──▶ line "a": heap ──┐
             line "b": heap ──┼──▶ first of all lines ──▶ pop
             line "c": held   ┘ (passed over, and nothing in it is moved)

As long as no line is held or gives way it gives its members in the order of one heap: by sort key,
equal ones by sequence. To hold a line or to let it go on costs the same however many stand in it.
The lines are namespaces: one whose bindings come to nothing must not keep the pods of others
waiting, nor one whose attempts do (`giving_way`): it lets those pass whose sort key begins with the
same number, which is their importance.
"""

import heapq
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

from k8s_scheduler.core.queue.giving_way import GivingWay
from k8s_scheduler.core.queue.heap import Heap

Member = TypeVar("Member")
_SWEEP_FROM: Final = 64
# Lines that give way, of which so many are passed to find one that does not.
_MOST_PASSED: Final = 64
_First = tuple[tuple[float, ...], int, str]


class Lines(Generic[Member]):
    """Members under string keys, each in a line."""

    def __init__(self, held: Iterable[str] = (), *, giving_way: GivingWay | None = None) -> None:
        self._lines: dict[str, Heap[Member]] = {}
        self._line_of: dict[str, str] = {}
        # The first of each line that is not held, with leftovers, which are known by not being it.
        self._firsts: list[_First] = []
        self._held = frozenset(held)
        self._giving_way = giving_way or GivingWay()

    @property
    def held(self) -> frozenset[str]:
        return self._held

    def hold(self, lines: Iterable[str]) -> None:
        """Pass over these lines from now on, and no other."""
        before, self._held = self._held, frozenset(lines)
        for line in sorted(before - self._held):
            self._show_first(line)

    def push(
        self, key: str, member: Member, *, line: str, order: tuple[float, ...], sequence: int
    ) -> None:
        heap = self._lines.get(line)
        if heap is None:
            heap = self._lines[line] = Heap()
        heap.push(key, member, order=order, sequence=sequence)
        self._line_of[key] = line
        if heap.first() == (order, sequence):
            self._show_first(line)

    def remove(self, key: str) -> Member | None:
        line = self._line_of.pop(key, None)
        if line is None:
            return None
        heap = self._lines[line]
        before = heap.first()
        member = heap.remove(key)
        if not len(heap):
            del self._lines[line]
        elif heap.first() != before:
            self._show_first(line)
        return member

    def pop(self) -> Member | None:
        """Take out the first member that stands in no line that is held, nor has to give way."""
        if not self.has_free:
            return None
        line = self._firsts[0][2]
        if self._giving_way.gives(line):
            line = self._passing() or line
        heap = self._lines[line]
        key, member = heap.pop_item()
        del self._line_of[key]
        if len(heap):
            self._show_first(line)
        else:
            del self._lines[line]
        return member

    def peek(self) -> tuple[tuple[float, ...], Member] | None:
        """Return the first member, with its sort key; another one as important may pass it."""
        if not self.has_free:
            return None
        return self._lines[self._firsts[0][2]].peek()

    def _passing(self) -> str | None:
        """Return a line whose first is as important as the very first, which lets it pass."""
        importance = self._firsts[0][0][:1]
        giving: list[_First] = []
        found = None
        while len(giving) < _MOST_PASSED and self.has_free:
            first = self._firsts[0]
            if first[0][:1] != importance:
                break
            if not self._giving_way.gives(first[2]):
                found = first[2]
                break
            giving.append(heapq.heappop(self._firsts))
        for first in giving:
            heapq.heappush(self._firsts, first)
            if found is not None:
                self._giving_way.passed(first[2])
        return found

    @property
    def has_free(self) -> bool:
        """Whether `pop` would give a member."""
        while self._firsts:
            order, sequence, line = self._firsts[0]
            heap = self._lines.get(line)
            if heap is not None and line not in self._held and heap.first() == (order, sequence):
                return True
            heapq.heappop(self._firsts)
        return False

    def __len__(self) -> int:
        return len(self._line_of)

    def __contains__(self, key: str) -> bool:
        return key in self._line_of

    def _show_first(self, line: str) -> None:
        """Let the first of a line be found, unless it is held."""
        heap = self._lines.get(line)
        first = None if heap is None or line in self._held else heap.first()
        if first is None:
            return
        heapq.heappush(self._firsts, (*first, line))
        if len(self._firsts) > max(_SWEEP_FROM, 4 * len(self._lines)):
            self._sweep()

    def _sweep(self) -> None:
        free = (
            (line, heap.first()) for line, heap in self._lines.items() if line not in self._held
        )
        self._firsts = [(*first, line) for line, first in free if first is not None]
        heapq.heapify(self._firsts)
