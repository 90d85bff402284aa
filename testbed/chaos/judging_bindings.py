"""One Binding per pod, and no pod forgotten."""

import math
from collections import Counter
from collections.abc import Iterator

from testbed.chaos.evidence import BindingSeen, Evidence, Finding, PodSeen
from testbed.chaos.world import at_end, unfold

CREATED = 201
_FAILURES = 500


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
    """A pod of ours is where a Binding of ours put it, and we put nobody else's anywhere."""
    by_us = [seen for seen in evidence.bindings if seen.user == evidence.user]
    asked = {(seen.uid, seen.node) for seen in by_us if seen.node and _may_be_done(seen)}
    unanswered = {(seen.namespace, seen.name) for seen in by_us if seen.status == 0}
    told = set()
    for change, _, _ in unfold(evidence.changes):
        pod = change.what
        if not isinstance(pod, PodSeen) or not pod.node or pod.uid in told:
            continue
        is_ours = pod.scheduler == evidence.scheduler
        is_asked = (pod.uid, pod.node) in asked
        name = f"pod {pod.namespace}/{pod.name}"
        if is_ours and not is_asked and (pod.namespace, pod.name) not in unanswered:
            told.add(pod.uid)
            what = f"{name} is on {pod.node}, and no Binding of ours says so"
            yield Finding("bound otherwise", what)
        elif is_asked and not is_ours:
            told.add(pod.uid)
            what = f"{name} is of {pod.scheduler}, and we have bound it to {pod.node}"
            yield Finding("bound otherwise", what)


def _may_be_done(seen: BindingSeen) -> bool:
    """Whether a Binding may have been carried out: a server that fails may have done it before."""
    return seen.status == CREATED or seen.status >= _FAILURES


def lost(evidence: Evidence) -> Iterator[Finding]:
    """When faults are over and time was given, no pod of ours waits that a node would take.

    Pods that were there at the last fault have until a moment that may lie before the end of the
    run; those that came later have until the end.
    """
    deadline = evidence.quiet_from + evidence.settle_seconds
    early = {pod.uid for at, pod in _of_ours(evidence) if at <= evidence.quiet_from}
    told = set()
    if deadline < evidence.ended_at:
        for pod, node in _waiting(evidence, until=deadline):
            if pod.uid in early:
                told.add(pod.uid)
                yield _lost(pod, node, evidence.settle_seconds)
    for pod, node in _waiting(evidence):
        if pod.uid not in told:
            yield _lost(pod, node, evidence.ended_at - evidence.quiet_from)


def _of_ours(evidence: Evidence) -> Iterator[tuple[float, PodSeen]]:
    for change in evidence.changes:
        if isinstance(change.what, PodSeen) and change.what.scheduler == evidence.scheduler:
            yield change.at, change.what


def _waiting(evidence: Evidence, *, until: float = math.inf) -> Iterator[tuple[PodSeen, str]]:
    """Yield the pods of ours that are not bound by then, each with a node that would take it."""
    world = at_end([change for change in evidence.changes if change.at <= until])
    for pod in world.pods.values():
        if pod.scheduler != evidence.scheduler or pod.node or pod.leaving or pod.gated:
            continue
        if node := world.fits_somewhere(pod):
            yield pod, node


def _lost(pod: PodSeen, node: str, waited_seconds: float) -> Finding:
    return Finding(
        "lost",
        f"pod {pod.namespace}/{pod.name} ({pod.uid}) is not bound {waited_seconds:.0f} s after the "
        f"last fault, and {node} would take it",
    )
