"""Reloads: every replica looks at what lies in the file, and the last of it is in force.

A process looks at the file every two seconds. What lay there for some seconds while it lived and
was not frozen is named in its log, taken or refused.
"""

from collections.abc import Iterator

from testbed.chaos.evidence import Configuration, Evidence, Finding
from testbed.chaos.plan import Action

NOTICED_SECONDS = 5.0
IN_FORCE = "k8s_scheduler_config_info"
# For how long after SIGSTOP a replica is not expected to see anything, in leases.
_FROZEN_LEASES = 3.0
# From the birth of a process until it has read the file, and ended over it if it is bad.
START_SECONDS = 10.0


def count_reloads(evidence: Evidence) -> tuple[int, int]:
    """Return how many good and bad configurations were put there after the first."""
    later = evidence.configurations[1:]
    good = sum(each.good for each in later)
    return good, len(later) - good


def unnoticed_reloads(evidence: Evidence) -> Iterator[Finding]:
    """Yield configurations that a replica should have seen and did not."""
    lives = life_spans(evidence)
    # What is read at the start is not named.
    for each, until in _spans(evidence)[1:]:
        if until - each.at < NOTICED_SECONDS:
            continue
        for process, (born, last) in lives.items():
            lived = born + START_SECONDS <= each.at and each.at + NOTICED_SECONDS <= last
            noticed = each.hash in evidence.logs.get(process, "")
            if lived and not noticed and not _was_frozen(evidence, process, each):
                kind = "good" if each.good else "bad"
                yield Finding("reload", f"{process} did not notice the {kind} {each.hash[:12]}")


def not_in_force(evidence: Evidence) -> Iterator[Finding]:
    """Yield replicas that live at the end under another configuration than the last."""
    if not evidence.configurations:
        return
    last = evidence.configurations[-1].hash
    for process, page in evidence.metrics.items():
        shown = [name for name in page if name.startswith(IN_FORCE)]
        if not any(last in name for name in shown):
            yield Finding("reload", f"{process} has {shown} in force, and {last} lies there")


def met_bad_file(evidence: Evidence, at: float) -> bool:
    """Return whether a process that ended then may have started with a bad file."""
    spans = _spans(evidence)
    return any(not each.good and each.at <= at <= until + START_SECONDS for each, until in spans)


def _spans(evidence: Evidence) -> list[tuple[Configuration, float]]:
    """Return what lay in the file, each with the time at which something else did."""
    offered = evidence.configurations
    ends = [*(each.at for each in offered), evidence.ended_at]
    return list(zip(offered, ends[1:], strict=True))


def life_spans(evidence: Evidence) -> dict[str, tuple[float, float]]:
    """Return when each process was seen first and last."""
    spans: dict[str, tuple[float, float]] = {}
    for sample in evidence.samples:
        born = spans.get(sample.process, (sample.at, 0.0))[0]
        spans[sample.process] = (born, sample.at)
    return spans


def _was_frozen(evidence: Evidence, process: str, offered: Configuration) -> bool:
    longest = _FROZEN_LEASES * evidence.lease_seconds
    return any(
        done.action == Action.FREEZE_LEADER
        and process.startswith(f"{done.detail}-")
        and done.at - NOTICED_SECONDS <= offered.at <= done.at + longest
        for done in evidence.done
    )
