"""Which groups of parked pods an event may concern, without asking each of them.

Thousands of groups may be parked, and events come by the thousand: nearly all of these concern
nearly none of those. So groups are filed by the plugins that reject them, and those of which it is
known (`interest`) behind the doors where a pod would have to come or leave to be news to them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from k8s_scheduler.core.queue.interest import Interest
from k8s_scheduler.core.state.news.pod_news import Door, PodNews


class Group(Protocol):
    """As much of a group as is filed."""

    rejectors: frozenset[str]
    interest: Interest | None


_Group = TypeVar("_Group", bound=Group)


class Rejected(NamedTuple):
    """What groups have in common to which the same events are news."""

    scheduler_name: str
    rejectors: frozenset[str]
    is_dear: bool


class Helps(Protocol):
    """Says whether something has happened that may help those that are rejected so."""

    def __call__(self, rejected: Rejected, *, with_pods: bool) -> bool:
        """Return it; pods that came or left and that plugins only count, `with_pods` alone."""


@dataclass(slots=True)
class _Filed(Generic[_Group]):
    """The groups that are rejected alike. Dicts of groups stand for ordered sets."""

    # To those any pod is news, and to those each that holds terms.
    to_all: dict[_Group, None] = field(default_factory=dict)
    to_terms: dict[_Group, None] = field(default_factory=dict)
    by_door: dict[Door, dict[_Group, None]] = field(default_factory=dict)
    groups: dict[_Group, None] = field(default_factory=dict)

    def add(self, group: _Group, interest: Interest | None) -> None:
        self.groups[group] = None
        if interest is None:
            self.to_all[group] = None
            return
        if interest.terms:
            self.to_terms[group] = None
        for door in interest.doors:
            self.by_door.setdefault(door, {})[group] = None

    def remove(self, group: _Group, interest: Interest | None) -> None:
        del self.groups[group]
        self.to_all.pop(group, None)
        self.to_terms.pop(group, None)
        for door in () if interest is None else interest.doors:
            here = self.by_door[door]
            del here[group]
            if not here:
                del self.by_door[door]

    def concerned(self, pods: PodNews) -> Iterable[_Group]:
        """Return the groups to which these pods may be news."""
        if pods.is_any:
            return self.groups
        found = dict(self.to_all)
        if pods.hold_terms:
            found.update(self.to_terms)
        known: Mapping[Door, object] = self.by_door
        few, many = (known, pods.doors) if len(known) <= len(pods.doors) else (pods.doors, known)
        for door in few:
            if door in many:
                found.update(self.by_door[door])
        return found


class Watchlist(Generic[_Group]):
    """Groups of parked pods, by what is news to them."""

    def __init__(self) -> None:
        self._filed: dict[Rejected, _Filed[_Group]] = {}
        # Where each group is.
        self._places: dict[_Group, tuple[Rejected, Interest | None]] = {}

    def file(self, group: _Group, scheduler_name: str, *, is_dear: bool) -> None:
        place = self._places.get(group)
        if place is not None:
            known, interest = place
            if known.rejectors is group.rejectors and interest is group.interest:
                return
            self.drop(group)
        rejected = Rejected(scheduler_name, group.rejectors, is_dear)
        self._places[group] = (rejected, group.interest)
        self._filed.setdefault(rejected, _Filed()).add(group, group.interest)

    def drop(self, group: _Group) -> None:
        place = self._places.pop(group, None)
        if place is None:
            return
        rejected, interest = place
        filed = self._filed[rejected]
        filed.remove(group, interest)
        if not filed.groups:
            del self._filed[rejected]

    def has_any(self, *, dear: bool) -> bool:
        """Return whether there is a group that is dear to judge, or one that is not."""
        return any(rejected.is_dear is dear for rejected in self._filed)

    def concerned(self, pods: PodNews, helps: Helps, *, dear: bool) -> list[_Group]:
        """Return the groups that something may have helped, in no particular order."""
        found: list[_Group] = []
        for rejected, filed in self._filed.items():
            if rejected.is_dear is not dear:
                continue
            if helps(rejected, with_pods=False):
                found += filed.groups
            elif helps(rejected, with_pods=True):
                found += filed.concerned(pods)
        return found
