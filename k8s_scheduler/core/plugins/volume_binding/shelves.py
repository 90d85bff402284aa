"""Things by class, sorted onto shelves as they come and go.

Of thousands of volumes one changes between two decisions. What was found out about the others is
kept with the very object it was found out about, and the shelf of what changed is made from the
one before, when somebody asks for it.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, Self, TypeVar

Thing = TypeVar("Thing")
Facts = TypeVar("Facts")
Kept = TypeVar("Kept", bound="Shelf[Any]")

# Namespace and name.
_Key = tuple[str, str]
# If more has changed on a shelf, it is made from scratch: beyond that, both cost about the same.
_FEW: Final = 32


class Shelf(Protocol[Facts]):
    """What is known of the things of one class. It never changes."""

    def changed(self, gone: list[Facts], come: list[Facts]) -> Self:
        """Return the shelf without some things and with others."""
        ...


class Shelves(Generic[Thing, Facts, Kept]):
    """The shelves of the objects last seen."""

    def __init__(
        self,
        class_of: Callable[[Thing], str],
        facts_of: Callable[[Thing], Facts],
        shelf_of: Callable[[list[Facts]], Kept],
    ) -> None:
        """Take a thing's class, what is to be known about it, and what a shelf is made of."""
        self._class_of = class_of
        self._facts_of = facts_of
        self._shelf_of = shelf_of
        self._seen: tuple[Any, ...] = ()
        self._known: dict[_Key, tuple[Any, str]] = {}
        self._by_class: dict[str, dict[_Key, Facts]] = {}
        self._shelves: dict[str, Kept] = {}
        # By class, what has changed since its shelf was made: the facts that are on the shelf.
        self._changed: dict[str, dict[_Key, Facts | None]] = {}

    def shelf(self, name: str, things: tuple[Any, ...]) -> Kept | None:
        """Return the shelf of a class when these are all the things there are; None if empty."""
        # Equal state, same tuple; and tuples of the very same objects are equal at a glance.
        if things is not self._seen and things != self._seen:
            self._sort(things)
            self._seen = things
        facts = self._by_class.get(name)
        if not facts:
            self._shelves.pop(name, None)
            self._changed.pop(name, None)
            return None
        changed = self._changed.pop(name, {})
        found = self._shelves.get(name)
        if found is None or len(changed) > _FEW:
            found = self._shelves[name] = self._shelf_of(list(facts.values()))
        elif changed:
            gone = [before for before in changed.values() if before is not None]
            come = [facts[key] for key in changed if key in facts]
            found = self._shelves[name] = found.changed(gone, come)
        return found

    def _sort(self, things: tuple[Any, ...]) -> None:
        """Take note of what is not as it was; what changed is mostly in one place."""
        start = _alike(self._seen, things)
        end = _alike(self._seen[:start:-1], things[:start:-1])
        before = self._seen[start : len(self._seen) - end]
        after = {_key(thing): thing for thing in things[start : len(things) - end]}
        for thing in before:
            if _key(thing) not in after:
                self._take(_key(thing))
        for key, thing in after.items():
            known = self._known.get(key)
            if known is None or known[0] is not thing:
                self._put(key, thing)

    def _put(self, key: _Key, thing: Any) -> None:
        if key in self._known:
            self._take(key)
        name = self._class_of(thing)
        self._known[key] = (thing, name)
        self._by_class.setdefault(name, {})[key] = self._facts_of(thing)
        self._changed.setdefault(name, {}).setdefault(key, None)

    def _take(self, key: _Key) -> None:
        _, name = self._known.pop(key)
        before = self._by_class[name].pop(key)
        self._changed.setdefault(name, {}).setdefault(key, before)


def _key(thing: Any) -> _Key:
    return thing.metadata.namespace, thing.metadata.name


def _alike(a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
    """Return how many things from the start are the same in both."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
