"""No node is filled beyond what it has when a pod of ours lands, but for races.

At the revision at which a pod of ours landed, was there room? Where there was none, somebody else
must explain it: the other scheduler landed there after the version that the decision had seen (a
race, which no scheduler can exclude and which is counted), or a request of an old leader reached
the server after another could lead. What explains neither is a finding.
"""

from dataclasses import dataclass, field

from testbed.chaos.evidence import Change, Decision, Evidence, Finding, PodSeen
from testbed.chaos.judging_bindings import CREATED
from testbed.chaos.resources import Room
from testbed.chaos.world import World, total, unfold

# Without a decision record: a bind may have been on its way so long when faults met it.
RACE_SECONDS = 60.0
# Carried out, or never answered.
_MAY_BE_DONE = frozenset({CREATED, 0})


@dataclass(slots=True)
class Overfills:
    """Nodes that were overfilled, by who explains it."""

    findings: list[Finding] = field(default_factory=list)
    races: int = 0
    late_writes: int = 0
    theirs: int = 0


def judge_truth(evidence: Evidence) -> Overfills:
    """Walk through history and explain every node that was overfilled by a pod that landed."""
    result = Overfills()
    landed: dict[str, Change] = {}
    late = _late_writes(evidence)
    # By time: recordings are read one after the other, and the last decision was carried out.
    decisions = sorted(evidence.decisions or (), key=lambda decision: decision.now)
    decided = {(d.uid, d.node): d for d in decisions}
    for change, before, world in unfold(evidence.changes):
        pod = change.what
        if not isinstance(pod, PodSeen) or change.gone or not pod.node:
            continue
        if before is not None and before.node:
            continue
        landed[pod.uid] = change
        node = world.known.get(pod.node)
        if node is None or node.has.holds(world.load_of(pod.node)):
            continue
        if pod.scheduler != evidence.scheduler:
            result.theirs += 1
            continue
        decision = decided.get((pod.uid, pod.node))
        lately = [
            guest
            for guest in world.guests(pod.node)
            if guest.uid in landed and _is_unseen(landed[guest.uid], decision, change.at)
        ]
        excused = _excused(world, pod.node, lately=lately, scheduler=evidence.scheduler)
        if node.has.holds(total(excused.without_others)):
            result.races += 1
        elif any((guest.namespace, guest.name) in late for guest in excused.ours):
            result.late_writes += 1
        else:
            result.findings.append(_overfilled(pod, world, node.has))
    return result


def _is_unseen(landing: Change, decision: Decision | None, now: float) -> bool:
    """Whether a pod came to its node without the decision knowing."""
    if decision is None:
        return landing.at >= now - RACE_SECONDS
    return landing.revision > decision.seen_pods


@dataclass(frozen=True, slots=True)
class _Excused:
    without_others: list[PodSeen]
    ours: list[PodSeen]


def _excused(world: World, node: str, *, lately: list[PodSeen], scheduler: str) -> _Excused:
    others = {guest.uid for guest in lately if guest.scheduler != scheduler}
    return _Excused(
        without_others=[guest for guest in world.guests(node) if guest.uid not in others],
        ours=[guest for guest in lately if guest.uid not in others],
    )


def _late_writes(evidence: Evidence) -> frozenset[tuple[str, str]]:
    """Return the pods whose Binding reached the server later than its sender could still lead.

    One that was refused, as a repetition is, put nobody anywhere, however late it came.
    """
    return frozenset(
        (entry.namespace, entry.name)
        for entry in evidence.passed
        if entry.ended_at - entry.at > evidence.write_seconds and entry.status in _MAY_BE_DONE
    )


def _overfilled(pod: PodSeen, world: World, has: Room) -> Finding:
    return Finding(
        "overfilled",
        f"pod {pod.namespace}/{pod.name} came to {pod.node}, which has {has} and holds "
        f"{world.load_of(pod.node)} now",
    )
