"""Whether there was something to judge: a check that was given nothing finds nothing.

Some things are rightly absent, and nobody is blamed for them:

* the recording of a process that never led: it may have ended over a bad file before it opened one;
* the last second of the recording of a process that was killed, and so single decisions of it;
* the metrics of a process that has ended, or that was started a moment before the end of the run.
"""

from collections.abc import Iterator

from testbed.chaos.evidence import Evidence, Finding, PodSeen
from testbed.chaos.judging_bindings import CREATED
from testbed.chaos.judging_processes import LOST_WORDS
from testbed.chaos.judging_reloads import START_SECONDS, life_spans

RULE = "not judged"
# What a replica writes before it binds anything; each line is in the file once it is written.
LEADS = "became leader"
# Processes are looked at every second until the end of the run, on a busy machine less often.
_SEEN_LAST_SECONDS = 10.0


def missing_evidence(evidence: Evidence) -> Iterator[Finding]:
    """Yield what has to be known about a run and is not."""
    of_ours = [
        change.what
        for change in evidence.changes
        if isinstance(change.what, PodSeen) and change.what.scheduler == evidence.scheduler
    ]
    if not of_ours:
        yield Finding(RULE, "no pod of ours ever came")
    elif any(pod.node for pod in of_ours):
        yield from _about_decisions(evidence)
        yield from _about_recordings(evidence)
        yield from _about_the_end(evidence)


def _about_decisions(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.decisions:
        yield Finding(RULE, "pods of ours were bound, and no decision was replayed")
    if not evidence.opinions:
        yield Finding(RULE, "pods of ours were bound, and the oracle was asked about none")


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
