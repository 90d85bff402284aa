"""Whether there was something to judge: a check that was given nothing finds nothing.

Some things are rightly absent, and nobody is blamed for them:

* the recording of a process that never led: it may have ended over a bad file before it opened one;
* the last second of the recording of a process that was killed, and so single decisions of it;
* the metrics of a process that has ended, or that was started a moment before the end of the run.
"""

from collections.abc import Iterator

from testbed.chaos.evidence import Evidence, Finding, PodSeen
from testbed.chaos.judging_bindings import CREATED
from testbed.chaos.judging_processes import KILLED, LOST_WORDS, grown_up_replicas
from testbed.chaos.judging_reloads import START_SECONDS, life_spans
from testbed.chaos.world import at_end, unfold

RULE = "not judged"
# What a replica writes before it binds anything; each line is in the file once it is written.
LEADS = "became leader"
# Processes are looked at every second until the end of the run, on a busy machine less often.
_SEEN_LAST_SECONDS = 10.0
# A process that was killed is seen to be gone so much later, and its last second is not recorded.
_UNRECORDED_SECONDS = 30.0
_NAMED = 5


def missing_evidence(evidence: Evidence) -> Iterator[Finding]:
    """Yield what has to be known about a run and is not."""
    of_ours = [
        change.what
        for change in evidence.changes
        if isinstance(change.what, PodSeen) and change.what.scheduler == evidence.scheduler
    ]
    yield from _about_trouble(evidence)
    yield from _unseen_bindings(evidence)
    if not of_ours:
        yield Finding(RULE, "no pod of ours ever came")
    elif any(pod.node for pod in of_ours):
        yield from _about_decisions(evidence)
        yield from _unrecorded_decisions(evidence)
        yield from _about_quiet_times(evidence)
        yield from _about_recordings(evidence)
        yield from _about_the_end(evidence)


def _about_trouble(evidence: Evidence) -> Iterator[Finding]:
    """Yield why a run in which nothing is found proves nothing."""
    if not evidence.faults:
        yield Finding(RULE, "no fault was injected")
    if not any(done.was_done for done in evidence.done):
        yield Finding(RULE, "nothing of the plan was done")
    if not any(node.open for node in at_end(evidence.changes).nodes.values()):
        yield Finding(RULE, "no node was open at the end")  # so no pod can be lost
    if not any(grown_up_replicas(evidence)):
        yield Finding(RULE, "no process was looked at long enough to say whether it grows")


def _unseen_bindings(evidence: Evidence) -> Iterator[Finding]:
    """Yield Bindings that the audit log has and the history has not: it stopped, or is not all."""
    landed = {
        (change.what.uid, change.what.node)
        for change in evidence.changes
        if isinstance(change.what, PodSeen)
    }
    for seen in evidence.bindings:
        if seen.status == CREATED and (seen.uid, seen.node) not in landed:
            name = f"pod {seen.namespace}/{seen.name}"
            what = f"{name} was bound to {seen.node}, and history does not show it there"
            yield Finding("hole in the history", what)


def _about_quiet_times(evidence: Evidence) -> Iterator[Finding]:
    """Only what was bound after the last fault has to be told."""
    quiet_from = evidence.quiet_from + evidence.lease_seconds
    for change, before, _ in unfold(evidence.changes):
        pod = change.what
        if isinstance(pod, PodSeen) and pod.scheduler == evidence.scheduler and pod.node:
            is_landing = before is None or not before.node
            if is_landing and not change.gone and change.at > quiet_from:
                return
    yield Finding(RULE, "no pod of ours was bound after the last fault")


def _about_decisions(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.decisions:
        yield Finding(RULE, "pods of ours were bound, and no decision was replayed")
    blind = [d for d in evidence.decisions or () if not (d.seen_pods and d.seen_nodes)]
    if blind:
        yield Finding(RULE, f"{len(blind)} decisions do not say what they had seen")
    if not evidence.opinions:
        yield Finding(RULE, "pods of ours were bound, and the oracle was asked about none")


def _unrecorded_decisions(evidence: Evidence) -> Iterator[Finding]:
    """Yield replicas that bound pods of which no recording says how that was decided."""
    if not evidence.decisions:
        return  # which is told once
    decided = {(each.uid, each.node) for each in evidence.decisions}
    recorded = {
        (seen.namespace, seen.name)
        for seen in evidence.bindings
        if (seen.uid, seen.node) in decided
    }
    missing: dict[str, list[str]] = {}
    for entry in evidence.passed:
        bound = entry.status == CREATED and (entry.namespace, entry.name) not in recorded
        if bound and not _was_killed(evidence, entry.replica, since=entry.at):
            missing.setdefault(entry.replica, []).append(f"{entry.namespace}/{entry.name}")
    for replica, pods in sorted(missing.items()):
        bound_pods = f"{replica} has bound {len(pods)} pods of which no recording has a decision"
        yield Finding(RULE, f"{bound_pods}: {', '.join(pods[:_NAMED])}")


def _was_killed(evidence: Evidence, replica: str, *, since: float) -> bool:
    return any(
        end.code == KILLED
        and end.process.startswith(f"{replica}-")
        and since <= end.at <= since + _UNRECORDED_SECONDS
        for end in evidence.ends
    )


def _about_recordings(evidence: Evidence) -> Iterator[Finding]:
    leaders = sorted(process for process, log in evidence.logs.items() if LEADS in log)
    if not leaders:
        yield Finding(RULE, "pods of ours were bound, and no log says who led")
    for replica in sorted({each.replica for each in evidence.passed if each.status == CREATED}):
        if leaders and not any(process.startswith(f"{replica}-") for process in leaders):
            yield Finding(RULE, f"{replica} has bound pods, and no log of it says that it led")
    replayed = {each.process for each in evidence.replayed}
    for process in leaders:
        if process not in replayed:
            yield Finding(RULE, f"{process} led, and no recording of it was replayed")


def _about_the_end(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.configurations:
        yield Finding(RULE, "nothing is known of what lay in the configuration file")
    if not any(evidence.metrics.values()):
        yield Finding(RULE, "no replica gave metrics at the end")
        return
    for process in _alive_at_the_end(evidence):
        if not evidence.metrics.get(process):
            yield Finding(RULE, f"{process} lived at the end and gave no metrics")


def _alive_at_the_end(evidence: Evidence) -> Iterator[str]:
    ended = {end.process for end in evidence.ends}
    for process, (born, last) in life_spans(evidence).items():
        started = born + START_SECONDS <= evidence.ended_at
        seen_last = last + _SEEN_LAST_SECONDS >= evidence.ended_at
        # It may lose its lease after the last look at it, and its end is not noted then.
        lost_lease = LOST_WORDS in evidence.logs.get(process, "")
        if started and seen_last and process not in ended and not lost_lease:
            yield process
