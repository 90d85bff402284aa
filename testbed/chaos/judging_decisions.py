"""Every decision had room, at the versions that the deciding replica had seen.

For each decision the world is put together as it was at the pods' version it had seen. On the
chosen node count the pods seen there, and the pods that the same process had decided for it before
and not seen there yet. There is no excuse: other schedulers' pods that it had not seen don't count.

A recording does not say at which version a pod was gone, so pods that were gone by the *time* of
the decision are left out. Pods whose earlier decision came to nothing are left out too: only a
decision that was the last about its pod, and was carried out, is known to have held its room.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from testbed.chaos.evidence import Decision, Evidence, Finding, NodeSeen, PodSeen
from testbed.chaos.resources import Room
from testbed.chaos.world import World


@dataclass(frozen=True, slots=True)
class _Life:
    """What history says of one pod as a whole."""

    asks: Room
    node: str
    over_at: float  # gone or finished


@dataclass(frozen=True, slots=True)
class _Numbered:
    number: int
    decision: Decision


def replayed_otherwise(evidence: Evidence) -> Iterator[Finding]:
    """Yield the recordings that were not decided again as they had been."""
    for replay in evidence.replayed:
        if replay.code:
            yield Finding("replay", f"{replay.process} ({replay.code}): {replay.words}")


def judge_decisions(evidence: Evidence) -> Iterator[Finding]:
    """Yield the decisions that had no room where they went."""
    numbered = [_Numbered(number, d) for number, d in enumerate(evidence.decisions or ())]
    lives, rooms, held = _lives(evidence), _rooms(evidence), _held(numbered)
    waiting = sorted(numbered, key=lambda entry: entry.decision.seen_pods)
    world, position = World(), 0
    for entry in waiting:
        while (
            position < len(evidence.changes)
            and evidence.changes[position].revision <= entry.decision.seen_pods
        ):
            world.apply(evidence.changes[position])
            position += 1
        yield from _judge(entry, world, lives=lives, rooms=rooms, held=held)


def _judge(
    entry: _Numbered,
    world: World,
    *,
    lives: Mapping[str, _Life],
    rooms: Mapping[str, tuple[list[int], list[Room]]],
    held: Mapping[tuple[str, str], list[_Numbered]],
) -> Iterator[Finding]:
    decision = entry.decision
    name = f"pod {decision.namespace}/{decision.name}"
    revisions, sizes = rooms.get(decision.node, ([], []))
    known = bisect_right(revisions, decision.seen_nodes)
    if not known:
        yield Finding("overfilled", f"{name}: {decision.node} was not there when it was chosen")
        return
    guests = {guest.uid for guest in world.guests(decision.node) if not guest.finished}
    for earlier in held.get((decision.replica, decision.node), ()):
        life = lives.get(earlier.decision.uid)
        if earlier.number < entry.number and life is not None and life.node == decision.node:
            guests.add(earlier.decision.uid)
    guests = {uid for uid in guests if lives[uid].over_at > decision.now}
    load = Room()
    for uid in sorted(guests | ({decision.uid} & set(lives))):
        load += lives[uid].asks
    if not sizes[known - 1].holds(load):
        yield Finding(
            "overfilled",
            f"{name} was given {decision.node}, which had {sizes[known - 1]} and would hold "
            f"{load} by what had been seen at version {decision.seen_pods}",
        )


def _lives(evidence: Evidence) -> dict[str, _Life]:
    lives: dict[str, _Life] = {}
    for change in evidence.changes:
        pod = change.what
        if isinstance(pod, PodSeen):
            over = change.gone or pod.finished
            before = lives.get(pod.uid)
            over_at = change.at if over else float("inf")
            if before is not None:
                over_at = min(over_at, before.over_at)
            lives[pod.uid] = _Life(pod.asks, pod.node, over_at)
    return lives


def _rooms(evidence: Evidence) -> dict[str, tuple[list[int], list[Room]]]:
    rooms: dict[str, tuple[list[int], list[Room]]] = {}
    for change in evidence.changes:
        if isinstance(change.what, NodeSeen) and not change.gone:
            revisions, sizes = rooms.setdefault(change.what.name, ([], []))
            revisions.append(change.revision)
            sizes.append(change.what.has)
    return rooms


def _held(numbered: list[_Numbered]) -> dict[tuple[str, str], list[_Numbered]]:
    """Return, by process and node, the decisions that were the last about their pod."""
    last: dict[tuple[str, str], _Numbered] = {}
    for entry in numbered:
        last[entry.decision.replica, entry.decision.uid] = entry
    held: dict[tuple[str, str], list[_Numbered]] = {}
    for entry in last.values():
        held.setdefault((entry.decision.replica, entry.decision.node), []).append(entry)
    return held
