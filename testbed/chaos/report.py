"""What a run came to, for people."""

import statistics
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from testbed.chaos.auditor import Verdict
from testbed.chaos.evidence import Evidence

_SHOWN = 20


def render(evidence: Evidence, verdict: Verdict, *, folder: Path) -> str:
    """Return the report."""
    return "\n".join(_lines(evidence, verdict, folder)) + "\n"


def _lines(evidence: Evidence, verdict: Verdict, folder: Path) -> Iterator[str]:
    yield f"chaos, seed {evidence.seed}"
    yield ""
    yield f"  pods of ours          {verdict.pods_of_ours}"
    yield f"  bound by us           {verdict.bound_by_us}"
    yield f"  bound by others       {verdict.bound_by_others}"
    actions = Counter(done.action for done in evidence.done if done.was_done)
    yield f"  actions               {sum(actions.values())}"
    for action, count in sorted(actions.items()):
        yield f"    {action:<22}{count}"
    if vain := len(evidence.done) - sum(actions.values()):
        yield f"  actions in vain       {vain}"
    yield f"  faults injected       {sum(evidence.faults.values())}"
    for fault, count in sorted(evidence.faults.items()):
        yield f"    {fault:<22}{count}"
    yield from _leadership(evidence, verdict)
    overfills = verdict.overfills
    yield (
        f"  races on nodes        {overfills.races} explained by the other scheduler, "
        f"{overfills.late_writes} by a late write, {overfills.theirs} of its own"
    )
    yield f"  decisions replayed    {verdict.decisions_judged}"
    yield f"  put to the oracle     {verdict.opinions}"
    good, bad = verdict.reloads
    yield f"  configurations        {good} good, {bad} bad"
    yield ""
    if not verdict.findings:
        yield "no violations"
    else:
        yield f"{len(verdict.findings)} VIOLATIONS (seed {evidence.seed}, evidence in {folder})"
        yield f"recorded input: {folder / 'record'}/*.tape, for k8s-scheduler replay FILE --check"
        for finding in verdict.findings[:_SHOWN]:
            yield f"  {finding}"
        if len(verdict.findings) > _SHOWN:
            yield f"  and {len(verdict.findings) - _SHOWN} more"


def _leadership(evidence: Evidence, verdict: Verdict) -> Iterator[str]:
    ends = Counter(_kind(end.asked, end.code) for end in evidence.ends)
    yield f"  ends of replicas      {', '.join(f'{n} {k}' for k, n in sorted(ends.items()))}"
    yield f"  take-overs            {_times([each.seconds for each in verdict.takeovers])}"
    calm = [each.seconds for each in verdict.takeovers if not each.disturbed]
    yield f"    of these undisturbed  {_times(calm)}"
    for each in verdict.takeovers:
        disturbed = ", amid other faults" if each.disturbed else ""
        yield f"    {each.action:<22}{each.seconds:.1f} s{disturbed}"


def _times(seconds: list[float]) -> str:
    """Say how many, the median and the worst."""
    if not seconds:
        return "0"
    return (
        f"{len(seconds)}; until the next pod was bound: median {statistics.median(seconds):.1f} s, "
        f"worst {max(seconds):.1f} s"
    )


def _kind(asked: bool, code: int) -> str:
    if asked:
        return "asked for"
    return {1: "lease lost", 2: "bad configuration"}.get(code, f"with code {code}")
