"""Every decision had room, at the versions that the deciding replica had seen.

Races are no excuse here: only what it had seen counts, and all of that. A sample is put to
kube-scheduler's own code as well (`oracle_sample`), which looks at more than room.
"""

from collections.abc import Iterator

from testbed.chaos.evidence import Evidence, Finding
from testbed.chaos.resources import Room
from testbed.chaos.seen_worlds import SeenWorld, seen_worlds


def replayed_otherwise(evidence: Evidence) -> Iterator[Finding]:
    """Yield the recordings that were not decided again as they had been."""
    for replay in evidence.replayed:
        if replay.code:
            yield Finding("replay", f"{replay.process} ({replay.code}): {replay.words}")


def judge_decisions(evidence: Evidence) -> Iterator[Finding]:
    """Yield the decisions that had no room where they went."""
    for seen in seen_worlds(evidence):
        yield from _judge(seen)


def _judge(seen: SeenWorld) -> Iterator[Finding]:
    decision = seen.decision
    name = f"pod {decision.namespace}/{decision.name}"
    node = seen.node(decision.node)
    if node is None:
        yield Finding("overfilled", f"{name}: {decision.node} was not there when it was chosen")
        return
    load = Room() if seen.pod is None else seen.pod.asks
    for guest in seen.guests(decision.node):
        load += guest.asks
    if not node.has.holds(load):
        yield Finding(
            "overfilled",
            f"{name} was given {decision.node}, which had {node.has} and would hold "
            f"{load} by what had been seen at version {decision.seen_pods}",
        )


def judge_by_oracle(evidence: Evidence) -> Iterator[Finding]:
    """Yield the decisions of the sample of which kube-scheduler's own code says otherwise."""
    for opinion in evidence.opinions:
        if opinion.complaint:
            pod = f"pod {opinion.namespace}/{opinion.name} on {opinion.node}"
            yield Finding("infeasible", f"{pod}, by {opinion.source}: {opinion.complaint}")
