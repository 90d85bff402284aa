"""Objects of other kinds that decisions depend on, by kind, namespace and name.

Cluster-scoped objects have the empty namespace. Lists come in the order of names, so that equal
clusters are looked at equally, whatever the order of their history.

An object can be assumed: decisions then see it as it will be once a write of ours is done. A newer
version from the watch ends that, whatever it says; so does `revert`.
"""

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject
from k8s_scheduler.core.state.news.changes import ChangeLog, ObjectChange
from k8s_scheduler.core.state.news.facts import NO_ROW, OBJECTS, FactLog

_Objects = dict[str, ClusterObject]
_Key = tuple[Kind, str, str]
# Told of every change in what decisions see: (kind, namespace, name).
Listener: TypeAlias = Callable[[Kind, str, str], None]


class ObjectStore:
    """What the watches of other kinds have shown."""

    def __init__(self, log: ChangeLog, facts: FactLog) -> None:
        self._log = log
        self._facts = facts
        self._objects: dict[Kind, dict[str, _Objects]] = defaultdict(dict)
        # Lists that were asked for, until something in them changes: equal state, same tuple.
        self._lists: dict[tuple[Kind, str], tuple[ClusterObject, ...]] = {}
        # By namespace, names and objects in order, as long as none comes or goes: one of thousands
        # changes between two looks at the list.
        self._in_order: dict[tuple[Kind, str], tuple[list[str], list[ClusterObject]]] = {}
        self._all: dict[Kind, tuple[ClusterObject, ...]] = {}
        # What the API server says of objects that are assumed to be otherwise.
        self._originals: dict[_Key, ClusterObject] = {}
        self._listeners: tuple[Listener, ...] = ()

    def listen(self, listener: Listener) -> None:
        self._listeners = (*self._listeners, listener)

    def put(self, kind: Kind, namespace: str, name: str, found: ClusterObject) -> None:
        original = self._originals.get((kind, namespace, name))
        if original is not None:
            if _version(original) == _version(found) and original == found:
                return
            del self._originals[kind, namespace, name]
        objects = self._objects[kind].setdefault(namespace, {})
        known = objects.get(name)
        objects[name] = found
        self._changed(kind, namespace, name)
        if known is None:
            self._log.note_object(kind, ObjectChange.ADD)
        elif known != found:
            self._log.note_object(kind, ObjectChange.UPDATE)

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        """Take an object away; an unknown one is no error (the watch may repeat)."""
        objects = self._objects[kind].get(namespace, {})
        self._originals.pop((kind, namespace, name), None)
        if objects.pop(name, None) is None:
            return
        self._changed(kind, namespace, name)
        self._log.note_object(kind, ObjectChange.DELETE)
        if not objects:
            del self._objects[kind][namespace]

    def assume(self, kind: Kind, found: ClusterObject) -> None:
        """Let decisions see an object as it will be; one that is not there is left alone."""
        metadata = found.metadata
        key = (kind, metadata.namespace, metadata.name)
        known = self.get(*key)
        if known is None:
            return
        self._originals.setdefault(key, known)
        self._objects[kind][metadata.namespace][metadata.name] = found
        self._changed(kind, metadata.namespace, metadata.name)

    def announce(self, kind: Kind) -> None:
        """Let others know of assumed objects, once it is clear that they stay so."""
        self._log.note_object(kind, ObjectChange.UPDATE)

    def revert(self, kind: Kind, namespace: str, name: str, *, quietly: bool = False) -> None:
        """Let decisions see an object as the API server has it again."""
        original = self._originals.pop((kind, namespace, name), None)
        if original is not None:
            self._objects[kind][namespace][name] = original
            self._changed(kind, namespace, name)
            if not quietly:
                self._log.note_object(kind, ObjectChange.UPDATE)

    # The caller knows which type belongs to the kind; a table of overloads would say no more.
    def get(self, kind: Kind, namespace: str, name: str) -> Any:
        return self._objects[kind].get(namespace, {}).get(name)

    def list(self, kind: Kind, namespace: str) -> tuple[Any, ...]:
        listed = self._lists.get((kind, namespace))
        if listed is None:
            objects = self._objects[kind].get(namespace)
            if objects is None:
                return ()
            in_order = self._in_order.get((kind, namespace))
            if in_order is None:
                names = sorted(objects)
                in_order = (names, [objects[name] for name in names])
                self._in_order[kind, namespace] = in_order
            listed = self._lists[kind, namespace] = tuple(in_order[1])
        return listed

    def list_all(self, kind: Kind) -> tuple[Any, ...]:
        listed = self._all.get(kind)
        if listed is None:
            lists = (self.list(kind, namespace) for namespace in sorted(self._objects[kind]))
            listed = self._all[kind] = tuple(itertools.chain.from_iterable(lists))
        return listed

    def _changed(self, kind: Kind, namespace: str, name: str) -> None:
        self._lists.pop((kind, namespace), None)
        self._all.pop(kind, None)
        self._put_in_order(kind, namespace, name)
        self._facts.note(NO_ROW, OBJECTS)
        for tell in self._listeners:
            tell(kind, namespace, name)

    def _put_in_order(self, kind: Kind, namespace: str, name: str) -> None:
        """Let an object take the place of what had its name; sort anew if it came or went."""
        in_order = self._in_order.get((kind, namespace))
        if in_order is None:
            return
        names, listed = in_order
        found = self.get(kind, namespace, name)
        place = bisect_left(names, name)
        if found is not None and place < len(names) and names[place] == name:
            listed[place] = found
        else:
            del self._in_order[kind, namespace]

    def original(self, kind: Kind, namespace: str, name: str) -> Any:
        return self._originals.get((kind, namespace, name)) or self.get(kind, namespace, name)

    def entries(self) -> Iterator[tuple[Kind, str, str, ClusterObject, ClusterObject | None]]:
        """Yield (kind, namespace, name, object, what it is assumed to be), for checkpoints."""
        for kind in sorted(self._objects):
            for namespace in sorted(self._objects[kind]):
                for found in self.list(kind, namespace):
                    name = found.metadata.name
                    original = self._originals.get((kind, namespace, name))
                    if original is None:
                        yield kind, namespace, name, found, None
                    else:
                        yield kind, namespace, name, original, found


def _version(found: ClusterObject) -> str:
    return found.metadata.resource_version
