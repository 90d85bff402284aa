"""What pods that are pre-binding wait for: which plugins to ask again after something changed.

Thousands of pods may wait for their volumes at a time, and each of these volumes changes several
times until it is bound. A plugin that was asked in vain about a pod is asked again only once
something has changed that it read then: views take down what is read through them (`Reads`).

              ┌────────────── asked in vain, and it read what can be followed ─────────────┐
              │                                                                            ▼
    UNFOLLOWED: asked on every occasion ◀── the pod changed, or it read more ── FOLLOWED: asked when
    (new here, restored, reads nothing)                                        an object or its node
                                                                               has changed

Objects and facts of the pod's own node can be followed. One that reads no object, or beyond its
node, is asked on every occasion.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.state.news.facts import NODE, FactLog
from k8s_scheduler.core.state.objects import ObjectStore
from k8s_scheduler.core.state.rows import NodeRow

# Kind, namespace and name; a list has no name, one of all namespaces has neither.
_Topic = tuple[Kind, str | None, str | None]
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class _Follower:
    """A pod that waits: for which objects, and for which facts of which row."""

    topics: tuple[_Topic, ...]
    row: NodeRow
    facts: int


class PreBindIndex:
    """Which pods to ask about again, in the order in which they were assumed."""

    def __init__(self, objects: ObjectStore, facts: FactLog) -> None:
        self._facts = facts
        self._cursor = facts.position
        self._unfollowed: dict[PodUid, None] = {}
        self._followers: dict[PodUid, _Follower] = {}
        self._by_topic: dict[_Topic, dict[PodUid, None]] = {}
        self._by_row: dict[NodeRow, dict[PodUid, None]] = {}
        # Followers of something that has changed.
        self._due: dict[PodUid, None] = {}
        objects.listen(self._object_changed)

    def ask_always(self, uid: PodUid) -> None:
        """Let a pod be asked on every occasion: nothing is known about what it waits for."""
        self.forget(uid)
        self._unfollowed[uid] = None

    def asked(self, uid: PodUid, reads: Reads, row: NodeRow | None) -> None:
        """Take note of what a pod has read that was asked in vain."""
        self.forget(uid)
        if row is None or not _can_be_followed(reads):
            self._unfollowed[uid] = None
            return
        if not self._by_row:
            # What happened before concerns no pod.
            self._cursor = self._facts.position
        topics = dict.fromkeys(_topic_of(*read) for read in reads.objects)
        self._followers[uid] = _Follower(tuple(topics), row, reads.facts | NODE)
        self._by_row.setdefault(row, {})[uid] = None
        for topic in topics:
            self._by_topic.setdefault(topic, {})[uid] = None

    def forget(self, uid: PodUid) -> None:
        """Let a pod go; it need not be here."""
        self._unfollowed.pop(uid, None)
        self._due.pop(uid, None)
        follower = self._followers.pop(uid, None)
        if follower is None:
            return
        _take(uid, self._by_row, follower.row)
        for topic in follower.topics:
            _take(uid, self._by_topic, topic)

    def changed(self, uid: PodUid) -> None:
        """Take note that a pod is another one than when it was asked."""
        if uid in self._followers:
            self.ask_always(uid)

    def occasion(self, order: Callable[[PodUid], int]) -> list[PodUid]:
        """Return which pods to ask about now that something may have happened."""
        return self._take_due(order, dict(self._unfollowed))

    def rest(self, order: Callable[[PodUid], int]) -> list[PodUid]:
        """Return which pods to ask about because of what the answers of others have led to."""
        return self._take_due(order, {})

    def _take_due(self, order: Callable[[PodUid], int], found: dict[PodUid, None]) -> list[PodUid]:
        self._look_at_rows()
        found.update(self._due)
        self._due.clear()
        return sorted(found, key=order)

    def _look_at_rows(self) -> None:
        """Let the pods be due whose node has changed."""
        if not self._by_row:
            return
        since = self._facts.since(self._cursor)
        self._cursor = self._facts.position
        if since is None:
            self._due.update(dict.fromkeys(self._followers))
            return
        by_row = self._by_row
        for row, facts in zip(*since, strict=True):
            for uid in by_row.get(NodeRow(row), ()):
                if facts & self._followers[uid].facts:
                    self._due[uid] = None

    def _object_changed(self, kind: Kind, namespace: str, name: str) -> None:
        by_topic = self._by_topic
        if by_topic:
            for topic in ((kind, namespace, name), (kind, namespace, None), (kind, None, None)):
                if topic in by_topic:
                    self._due.update(by_topic[topic])


def _can_be_followed(reads: Reads) -> bool:
    beyond_its_node = reads.wide_facts or reads.counters or reads.scalars or reads.presences
    return bool(reads.objects) and not beyond_its_node and reads.counts_nodes is None


def _topic_of(what: str, kind: Kind, namespace: str, name: str) -> _Topic:
    match what:
        case "list":
            return kind, namespace, None
        case "list_all" | "class":
            return kind, None, None
    return kind, namespace, name


def _take(uid: PodUid, index: dict[_Key, dict[PodUid, None]], key: _Key) -> None:
    """Take a pod out of an index; nothing is left of what no pod waits for."""
    found = index[key]
    del found[uid]
    if not found:
        del index[key]
