"""The auditor: all checks over one run's evidence, and what is worth reporting beside them."""

from collections import Counter
from dataclasses import dataclass

from testbed.chaos.evidence import Evidence, Finding, PodSeen
from testbed.chaos.judging_bindings import CREATED, bound_otherwise, bound_twice, lost
from testbed.chaos.judging_decisions import judge_by_oracle, judge_decisions, replayed_otherwise
from testbed.chaos.judging_evidence import missing_evidence
from testbed.chaos.judging_processes import (
    broken_replicas,
    endless_replicas,
    growing_replicas,
)
from testbed.chaos.judging_reloads import count_reloads, not_in_force, unnoticed_reloads
from testbed.chaos.judging_room import Overfills, judge_truth
from testbed.chaos.judging_words import told_nothing, told_wrongly
from testbed.chaos.takeovers import Takeover, find_takeovers


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the auditor says of a run."""

    findings: tuple[Finding, ...]
    overfills: Overfills
    pods_of_ours: int
    bound_by_us: int
    bound_by_others: int
    takeovers: tuple[Takeover, ...]
    decisions_judged: int
    opinions: int
    reloads: tuple[int, int]  # good and bad


def judge(evidence: Evidence) -> Verdict:
    """Apply every check."""
    overfills = judge_truth(evidence)
    findings = [
        *(Finding("hole in the history", hole) for hole in evidence.holes),
        *missing_evidence(evidence),
        *bound_twice(evidence),
        *bound_otherwise(evidence),
        *lost(evidence),
        *overfills.findings,
        *judge_decisions(evidence),
        *judge_by_oracle(evidence),
        *replayed_otherwise(evidence),
        *told_wrongly(evidence),
        *told_nothing(evidence),
        *broken_replicas(evidence),
        *endless_replicas(evidence),
        *growing_replicas(evidence),
        *unnoticed_reloads(evidence),
        *not_in_force(evidence),
    ]
    schedulers = {
        change.what.uid: change.what.scheduler
        for change in evidence.changes
        if isinstance(change.what, PodSeen)
    }
    bound = Counter(
        schedulers.get(seen.uid) == evidence.scheduler
        for seen in evidence.bindings
        if seen.status == CREATED
    )
    return Verdict(
        findings=tuple(findings),
        overfills=overfills,
        pods_of_ours=sum(name == evidence.scheduler for name in schedulers.values()),
        bound_by_us=bound[True],
        bound_by_others=bound[False],
        takeovers=tuple(find_takeovers(evidence)),
        decisions_judged=len(evidence.decisions or ()),
        opinions=len(evidence.opinions),
        reloads=count_reloads(evidence),
    )
