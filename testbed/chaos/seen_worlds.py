"""What a deciding replica had seen, put together from the history of the cluster.

For each decision: nodes as they were at the nodes' version it had seen, and on each the pods that
were seen there at the pods' version, together with those that the same process had decided for it
before and not seen there yet. Other schedulers' pods that it had not seen don't count.

A pod that was gone at the pods' version it had seen is left out. Versions of pods that were read
and not watched don't show, so pods that were gone by the *time* of the decision are left out as
well: the clock of history is a little late, but never early. Pods whose earlier decision came to
nothing are left out too: only a decision that was the last about its pod, and was carried out, is
known to have held its room.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from testbed.chaos.evidence import Decision, Evidence, NodeSeen, PodSeen
from testbed.chaos.world import World


@dataclass(frozen=True, slots=True)
class _Numbered:
    number: int
    decision: Decision


@dataclass(frozen=True, slots=True)
class _Life:
    """What history says of one pod as a whole."""

    last: PodSeen
    # When it was gone or finished, and at which version.
    over_at: float = math.inf
    over_revision: float = math.inf

    def is_over(self, decision: Decision) -> bool:
        """Return whether it was over when something was decided."""
        return self.over_revision <= decision.seen_pods or self.over_at <= decision.now


# By node: the revisions at which it changed, and what it was then; None while it was away.
_Nodes = Mapping[str, tuple[list[int], list[NodeSeen | None]]]


@dataclass(frozen=True, slots=True)
class SeenWorld:
    """The cluster before one decision. Ask before the next one is made: it changes."""

    decision: Decision
    _number: int
    _world: World
    _lives: Mapping[str, _Life]
    _nodes: _Nodes
    _held: Mapping[tuple[str, str], list[_Numbered]]

    @property
    def pod(self) -> PodSeen | None:
        """The pod that was decided about; None if history does not know it."""
        life = self._lives.get(self.decision.uid)
        return None if life is None else life.last

    @property
    def nodes(self) -> Iterator[NodeSeen]:
        """All nodes that were there."""
        for name in sorted(self._nodes):
            if (node := self.node(name)) is not None:
                yield node

    def node(self, name: str) -> NodeSeen | None:
        """Return a node as it was; None if it was not there."""
        revisions, states = self._nodes.get(name, ([], []))
        known = bisect_right(revisions, self.decision.seen_nodes)
        return states[known - 1] if known else None

    def guests(self, node: str) -> list[PodSeen]:
        """Return the pods that took room on a node, without the one that was decided about."""
        decision = self.decision
        uids = {guest.uid for guest in self._world.guests(node) if not guest.finished}
        for earlier in self._held.get((decision.replica, node), ()):
            life = self._lives.get(earlier.decision.uid)
            if earlier.number < self._number and life is not None and life.last.node == node:
                uids.add(earlier.decision.uid)
        uids.discard(decision.uid)
        lives = [self._lives[uid] for uid in sorted(uids)]
        return [life.last for life in lives if not life.is_over(decision)]


def seen_worlds(evidence: Evidence) -> Iterator[SeenWorld]:
    """Yield the world before each decision, in the order of what had been seen."""
    numbered = [_Numbered(number, d) for number, d in enumerate(evidence.decisions or ())]
    lives, nodes, held = _lives(evidence), _node_states(evidence), _held(numbered)
    world, position = World(), 0
    for entry in sorted(numbered, key=lambda entry: entry.decision.seen_pods):
        while (
            position < len(evidence.changes)
            and evidence.changes[position].revision <= entry.decision.seen_pods
        ):
            world.apply(evidence.changes[position])
            position += 1
        yield SeenWorld(entry.decision, entry.number, world, lives, nodes, held)


def _lives(evidence: Evidence) -> dict[str, _Life]:
    lives: dict[str, _Life] = {}
    for change in evidence.changes:
        pod = change.what
        if isinstance(pod, PodSeen):
            before = lives.get(pod.uid, _Life(pod))
            over = (before.over_at, before.over_revision)
            if (change.gone or pod.finished) and over[0] == math.inf:
                over = (change.at, change.revision)
            lives[pod.uid] = _Life(pod, *over)
    return lives


def _node_states(evidence: Evidence) -> _Nodes:
    nodes: dict[str, tuple[list[int], list[NodeSeen | None]]] = {}
    for change in evidence.changes:
        if isinstance(change.what, NodeSeen):
            revisions, states = nodes.setdefault(change.what.name, ([], []))
            revisions.append(change.revision)
            states.append(None if change.gone else change.what)
    return nodes


def _held(numbered: list[_Numbered]) -> dict[tuple[str, str], list[_Numbered]]:
    """Return, by process and node, the decisions that were the last about their pod."""
    last: dict[tuple[str, str], _Numbered] = {}
    for entry in numbered:
        last[entry.decision.replica, entry.decision.uid] = entry
    held: dict[tuple[str, str], list[_Numbered]] = {}
    for entry in last.values():
        held.setdefault((entry.decision.replica, entry.decision.node), []).append(entry)
    return held
