"""A heap for each namespace, some of which may be held back, and one order over all of them.

    push ──▶ namespace "a": heap ──┐
             namespace "b": heap ──┼──▶ first of all heaps ──▶ pop
             namespace "c": held   ┘ (passed over, and nothing in it is moved)

As long as no namespace is held or gives way, members come in the order of one heap: by sort key,
equal ones by sequence. Holding a namespace, or letting it go on, costs the same however many pods
it has. A namespace whose bindings come to nothing must not keep the pods of others waiting, nor one
whose attempts do (`giving_way`): it lets those pass whose sort key begins with the same number,
which is their importance.
"""

import heapq
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

from k8s_scheduler.core.queue.giving_way import GivingWay
from k8s_scheduler.core.queue.heap import Heap

Member = TypeVar("Member")
_SWEEP_FROM: Final = 64
# Namespaces that give way, of which so many are passed to find one that does not.
_MOST_PASSED: Final = 64
_First = tuple[tuple[float, ...], int, str]


class NamespaceHeaps(Generic[Member]):
    """Members under string keys, each in a namespace."""

    def __init__(self, held: Iterable[str] = (), *, giving_way: GivingWay | None = None) -> None:
        self._heaps: dict[str, Heap[Member]] = {}
        self._namespace_of: dict[str, str] = {}
        # The first of each namespace that is not held; an entry that is not it any more is skipped.
        self._firsts: list[_First] = []
        self._held = frozenset(held)
        self._giving_way = giving_way or GivingWay()

    @property
    def held(self) -> frozenset[str]:
        return self._held

    def hold(self, namespaces: Iterable[str]) -> None:
        """Pass over these namespaces from now on, and no other."""
        before, self._held = self._held, frozenset(namespaces)
        for namespace in sorted(before - self._held):
            self._show_first(namespace)

    def push(
        self, key: str, member: Member, *, namespace: str, order: tuple[float, ...], sequence: int
    ) -> None:
        heap = self._heaps.get(namespace)
        if heap is None:
            heap = self._heaps[namespace] = Heap()
        heap.push(key, member, order=order, sequence=sequence)
        self._namespace_of[key] = namespace
        if heap.first() == (order, sequence):
            self._show_first(namespace)

    def remove(self, key: str) -> Member | None:
        namespace = self._namespace_of.pop(key, None)
        if namespace is None:
            return None
        heap = self._heaps[namespace]
        before = heap.first()
        member = heap.remove(key)
        if not len(heap):
            del self._heaps[namespace]
        elif heap.first() != before:
            self._show_first(namespace)
        return member

    def pop(self) -> Member | None:
        """Take out the first member of a namespace that is not held and need not give way."""
        if not self.has_free:
            return None
        namespace = self._firsts[0][2]
        if self._giving_way.gives(namespace):
            namespace = self._passing() or namespace
        heap = self._heaps[namespace]
        key, member = heap.pop_item()
        del self._namespace_of[key]
        if len(heap):
            self._show_first(namespace)
        else:
            del self._heaps[namespace]
        return member

    def peek(self) -> tuple[tuple[float, ...], Member] | None:
        """Return the first member, with its sort key; another one as important may pass it."""
        if not self.has_free:
            return None
        return self._heaps[self._firsts[0][2]].peek()

    def _passing(self) -> str | None:
        """Return a namespace whose first is as important as the very first, which lets it pass."""
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
        while self._firsts:
            order, sequence, name = self._firsts[0]
            heap = self._heaps.get(name)
            if heap is not None and name not in self._held and heap.first() == (order, sequence):
                return True
            heapq.heappop(self._firsts)
        return False

    def __len__(self) -> int:
        return len(self._namespace_of)

    def __contains__(self, key: str) -> bool:
        return key in self._namespace_of

    def _show_first(self, namespace: str) -> None:
        """Let the first of a namespace be found, unless it is held."""
        heap = self._heaps.get(namespace)
        first = None if heap is None or namespace in self._held else heap.first()
        if first is None:
            return
        heapq.heappush(self._firsts, (*first, namespace))
        if len(self._firsts) > max(_SWEEP_FROM, 4 * len(self._heaps)):
            self._sweep()

    def _sweep(self) -> None:
        firsts = ((name, heap.first()) for name, heap in self._heaps.items())
        self._firsts = [
            (*first, name) for name, first in firsts if first is not None and name not in self._held
        ]
        heapq.heapify(self._firsts)
