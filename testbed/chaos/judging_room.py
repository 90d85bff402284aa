"""No node is filled beyond what it has when a pod of ours lands, but for races.

At the revision at which a pod of ours landed, was there room? Where there was none, somebody else
must explain it: the other scheduler landed there after the version that the decision had seen (a
race, which no scheduler can exclude and which is counted), or a request of an old leader reached
the server after another could lead. What explains neither is a finding.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.chaos.evidence import Change, Decision, Evidence, Finding, Passed, PodSeen
from testbed.chaos.resources import Room
from testbed.chaos.world import World, total, unfold

# Without a decision record: a bind may have been on its way so long when faults met it.
RACE_SECONDS = 60.0


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
    passed = {(entry.namespace, entry.name): entry for entry in evidence.passed}
    decided = {(d.uid, d.node): d for d in evidence.decisions or ()}
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
        elif _came_late(excused.ours, passed, evidence):
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


def _came_late(
    pods: list[PodSeen], passed: Mapping[tuple[str, str], Passed], evidence: Evidence
) -> bool:
    """Whether a Binding of these reached the server later than its sender could still lead."""
    for pod in pods:
        entry = passed.get((pod.namespace, pod.name))
        if entry is not None and entry.ended_at - entry.at > evidence.write_seconds:
            return True
    return False


def _overfilled(pod: PodSeen, world: World, has: Room) -> Finding:
    return Finding(
        "overfilled",
        f"pod {pod.namespace}/{pod.name} came to {pod.node}, which has {has} and holds "
        f"{world.load_of(pod.node)} now",
    )
