"""One Binding per pod, and no pod forgotten."""

from collections import Counter
from collections.abc import Iterator

from testbed.chaos.evidence import Evidence, Finding, PodSeen
from testbed.chaos.world import at_end, unfold

CREATED = 201


def bound_twice(evidence: Evidence) -> Iterator[Finding]:
    """No pod is bound by two Bindings, whoever sent them, and none changes its node."""
    carried_out = Counter(seen.uid for seen in evidence.bindings if seen.status == CREATED)
    for uid, count in carried_out.items():
        if count > 1:
            yield Finding("bound twice", f"pod {uid}: {count} Bindings were carried out")
    for change, before, _ in unfold(evidence.changes):
        pod = change.what
        if isinstance(pod, PodSeen) and before is not None and before.node not in {"", pod.node}:
            moved = f"from {before.node} to {pod.node or 'nowhere'}"
            yield Finding("bound twice", f"pod {pod.namespace}/{pod.name} moved {moved}")


def bound_otherwise(evidence: Evidence) -> Iterator[Finding]:
    """A pod of ours is where a Binding of ours put it."""
    asked = {(seen.uid, seen.node) for seen in evidence.bindings if seen.node}
    unanswered = {(seen.namespace, seen.name) for seen in evidence.bindings if seen.status == 0}
    told = set()
    for change, _, _ in unfold(evidence.changes):
        pod = change.what
        if not isinstance(pod, PodSeen) or pod.scheduler != evidence.scheduler or not pod.node:
            continue
        if (pod.uid, pod.node) in asked or (pod.namespace, pod.name) in unanswered:
            continue
        if pod.uid not in told:
            told.add(pod.uid)
            yield Finding(
                "bound otherwise",
                f"pod {pod.namespace}/{pod.name} is on {pod.node}, and no Binding says so",
            )


def lost(evidence: Evidence) -> Iterator[Finding]:
    """When faults are over and time was given, no pod of ours waits that a node would take."""
    world = at_end(evidence.changes)
    for pod in world.pods.values():
        if pod.scheduler != evidence.scheduler or pod.node or pod.leaving or pod.gated:
            continue
        if node := world.fits_somewhere(pod):
            waited = evidence.ended_at - evidence.quiet_from
            yield Finding(
                "lost",
                f"pod {pod.namespace}/{pod.name} ({pod.uid}) is not bound {waited:.0f} s after the "
                f"last fault, and {node} would take it",
            )
