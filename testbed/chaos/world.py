"""The cluster at a revision, put together from its history."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from testbed.chaos.evidence import Change, NodeSeen, PodSeen, Seen
from testbed.chaos.resources import NOTHING, Room


@dataclass(slots=True)
class World:
    """Pods and nodes as they are after all changes that were applied."""

    pods: dict[str, PodSeen] = field(default_factory=dict)
    nodes: dict[str, NodeSeen] = field(default_factory=dict)
    on_node: dict[str, set[str]] = field(default_factory=dict)
    # The last that was known of nodes, of those that are gone too.
    known: dict[str, NodeSeen] = field(default_factory=dict)

    def apply(self, change: Change) -> None:
        """Take one more write in."""
        if isinstance(change.what, NodeSeen):
            self.known[change.what.name] = change.what
            if change.gone:
                self.nodes.pop(change.what.name, None)
            else:
                self.nodes[change.what.name] = change.what
        elif isinstance(change.what, PodSeen):
            self._take_off(change.what.uid)
            if not change.gone:
                self._put_on(change.what)

    def put(self, seen: Seen) -> None:
        """Take in something as it is now."""
        self.apply(Change(0, 0.0, gone=False, what=seen))

    def _take_off(self, uid: str) -> None:
        before = self.pods.pop(uid, None)
        if before is not None and before.node:
            self.on_node[before.node].discard(uid)

    def _put_on(self, pod: PodSeen) -> None:
        self.pods[pod.uid] = pod
        if pod.node:
            self.on_node.setdefault(pod.node, set()).add(pod.uid)

    def guests(self, node: str) -> list[PodSeen]:
        """Return the pods on a node."""
        return [self.pods[uid] for uid in sorted(self.on_node.get(node, ()))]

    def load_of(self, node: str) -> Room:
        """Return what the pods on a node take together."""
        return total(self.guests(node))

    def fits_somewhere(self, pod: PodSeen) -> str:
        """Return a node that would take a pod; empty if there is none."""
        for name, node in sorted(self.nodes.items()):
            if not node.open or (pod.zone and pod.zone != node.zone):
                continue
            if node.has.holds(self.load_of(name) + pod.asks):
                return name
        return ""


def total(pods: Iterable[PodSeen]) -> Room:
    """Return what pods take together."""
    load = NOTHING
    for pod in pods:
        load += pod.takes
    return load


def unfold(changes: Sequence[Change]) -> Iterator[tuple[Change, PodSeen | None, World]]:
    """Yield every change of a pod or node, what was known of the pod before, and the world after.

    The world is one object that changes: look, and do not keep it.
    """
    world = World()
    for change in changes:
        before = world.pods.get(change.what.uid) if isinstance(change.what, PodSeen) else None
        world.apply(change)
        if isinstance(change.what, PodSeen | NodeSeen):
            yield change, before, world


def at_end(changes: Sequence[Change]) -> World:
    """Return the world after all changes."""
    world = World()
    for change in changes:
        world.apply(change)
    return world
