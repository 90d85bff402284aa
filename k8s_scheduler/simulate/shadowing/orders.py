"""Which other states a decision may have been made on.

A scheduler decides, and the binding is seen later. Meanwhile the cluster moves on, and bindings
overtake each other on their way: a pod decided first may be seen bound second. So the state just
before a binding is not always the state that was decided on. What is known is when pods came to
wait, and what changed shortly before and after; from that come the states that are worth a look:

* bindings in the order in which their pods came to wait, or by priority and then so;
* the same, with the last other changes not seen yet.

Each is a proposal. Only one on which the choice is the best explains it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from k8s_scheduler.simulate.shadowing.changes import Binding, SeenChange

Key = Callable[[Binding], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Variant:
    """A state: that before the binding with some later changes told, some earlier taken back."""

    told: tuple[SeenChange, ...]
    taken_back: tuple[SeenChange, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """Return what is different, in words."""
        early = (f"{seen.text}: known to it already" for seen in self.told)
        late = (f"{seen.text}: not known to it yet" for seen in self.taken_back)
        return (*early, *late)


def _by_arrival(binding: Binding) -> tuple[int, ...]:
    return (binding.queued,)


def _by_priority(binding: Binding) -> tuple[int, ...]:
    return (-binding.priority, binding.queued)


def variants(
    binding: Binding, before: Sequence[SeenChange], after: Sequence[SeenChange]
) -> Iterator[Variant]:
    """Yield other states, the most likely first and none twice.

    `before` are the changes shortly before the binding, `after` those shortly after, both in the
    order they were seen.
    """
    orders = [_reordered(binding, before, after, key) for key in (_by_arrival, _by_priority)]
    others = [seen for seen in reversed(before) if seen.binding is None and seen.matters]
    proposals = list(orders)
    for depth in _depths(len(others)):
        proposals += [
            Variant(order.told, _newest_first((*order.taken_back, *others[:depth])))
            for order in orders
        ]
        proposals.append(Variant((), tuple(others[:depth])))
    found: set[tuple[tuple[int, ...], tuple[int, ...]]] = {((), ())}
    for proposal in proposals:
        places = (_places(proposal.told), _places(proposal.taken_back))
        if places not in found:
            found.add(places)
            yield proposal


def _reordered(
    binding: Binding, before: Sequence[SeenChange], after: Sequence[SeenChange], key: Key
) -> Variant:
    mine = key(binding)
    return Variant(
        tuple(s for s in after if s.binding is not None and key(s.binding) < mine),
        tuple(s for s in reversed(before) if s.binding is not None and key(s.binding) > mine),
    )


def _newest_first(changes: Sequence[SeenChange]) -> tuple[SeenChange, ...]:
    return tuple(sorted(changes, key=lambda seen: -seen.place))


def _places(changes: Sequence[SeenChange]) -> tuple[int, ...]:
    return tuple(seen.place for seen in changes)


def _depths(count: int) -> Iterator[int]:
    """Yield 1, 2, 4 … and the count itself."""
    depth = 1
    while depth < count:
        yield depth
        depth *= 2
    if count:
        yield count
