"""Events and conditions say what happened.

Events are written without a promise: a replica that ends takes its unwritten ones along, and a
server that says no often enough is not asked again. So what is there must be true, and what came
when nothing was wrong must be told: after the last fault, by a replica that lived on.
"""

import re
from collections.abc import Iterator

from testbed.chaos.evidence import Change, EventSeen, Evidence, Finding, PodSeen
from testbed.chaos.world import at_end, unfold

SCHEDULED = "Scheduled"
FAILED = "FailedScheduling"
_TOLD_SECONDS = 10.0
_ASSIGNED = re.compile(r"^Successfully assigned (?P<pod>\S+) to (?P<node>\S+)$")


def told_wrongly(evidence: Evidence) -> Iterator[Finding]:
    """Yield what events and conditions say that is not so."""
    nodes: dict[str, str] = {}
    names: dict[str, str] = {}
    for change in evidence.changes:
        pod = change.what
        if isinstance(pod, PodSeen) and pod.scheduler == evidence.scheduler:
            names[pod.uid] = f"{pod.namespace}/{pod.name}"
            nodes[pod.uid] = pod.node or nodes.get(pod.uid, "")
    for event in _events(evidence):
        if event.uid in names and event.reason == SCHEDULED:
            said = _ASSIGNED.match(event.note)
            truth = (names[event.uid], nodes[event.uid])
            if said is None or (said["pod"], said["node"]) != truth:
                yield Finding(
                    "told wrongly", f"{event.note!r}, but pod {truth[0]} is on {truth[1] or '-'}"
                )
    yield from _denied(evidence)


def _denied(evidence: Evidence) -> Iterator[Finding]:
    """Yield bound pods whose condition ever said otherwise: a Binding writes both at once."""
    told = set()
    for change in evidence.changes:
        pod = change.what
        if not isinstance(pod, PodSeen) or pod.scheduler != evidence.scheduler:
            continue
        if pod.node and pod.scheduled[0] != "True" and pod.uid not in told:
            told.add(pod.uid)
            yield Finding(
                "told wrongly",
                f"pod {pod.namespace}/{pod.name} is on {pod.node}, and its condition says "
                f"{pod.scheduled} at version {change.revision}",
            )


def told_nothing(evidence: Evidence) -> Iterator[Finding]:
    """Yield what happened after the last fault and nobody was told."""
    heard = {(event.uid, event.reason) for event in _events(evidence)}
    for change, before, _ in unfold(evidence.changes):
        pod = change.what
        if not _is_landing(change, before, evidence) or not isinstance(pod, PodSeen):
            continue
        if (pod.uid, SCHEDULED) not in heard:
            yield Finding("told nothing", f"pod {pod.namespace}/{pod.name}: no event {SCHEDULED}")
    for pod in at_end(evidence.changes).pods.values():
        if pod.scheduler != evidence.scheduler or pod.node or pod.leaving or pod.gated:
            continue
        if pod.scheduled[:2] != ("False", "Unschedulable"):
            yield Finding(
                "told nothing",
                f"pod {pod.namespace}/{pod.name} waits, and its condition says {pod.scheduled}",
            )
        if (pod.uid, FAILED) not in heard:
            yield Finding("told nothing", f"pod {pod.namespace}/{pod.name}: no event {FAILED}")


def _is_landing(change: Change, before: PodSeen | None, evidence: Evidence) -> bool:
    """Whether a pod of ours came to its node in quiet times, and there was time to tell.

    The last requests of a replica that ends may be carried out after its end.
    """
    pod = change.what
    until = change.at + _TOLD_SECONDS
    return (
        isinstance(pod, PodSeen)
        and pod.scheduler == evidence.scheduler
        and not change.gone
        and bool(pod.node)
        and (before is None or not before.node)
        and evidence.quiet_from + evidence.lease_seconds < change.at
        and until < evidence.ended_at
        and not any(change.at - evidence.lease_seconds <= end.at <= until for end in evidence.ends)
    )


def _events(evidence: Evidence) -> Iterator[EventSeen]:
    for change in evidence.changes:
        if isinstance(change.what, EventSeen) and not change.gone:
            yield change.what
