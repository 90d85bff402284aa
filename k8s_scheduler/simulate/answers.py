"""Decisions as data: one JSON object for each pod that was judged.

The form is that of the recorded decisions (docs/conformance.md): what is empty is left out, and
names are sorted, so that the same decision is always the same line.
"""

from typing import Any, Final, TypeAlias

import msgspec

from k8s_scheduler.core.inspection import PRE_FILTER_RESULT, Judgement, Preemption, Verdict

Answer: TypeAlias = dict[str, Any]

# Under this key stands a node's total among the scores of its plugins.
TOTAL: Final = ""
_RESOLVABLE: Final = {True: "Unschedulable", False: "UnschedulableAndUnresolvable"}


def encode(answer: Answer) -> bytes:
    return msgspec.json.encode(answer) + b"\n"


def failed(scenario: str, problem: str, *, pod: str = "") -> Answer:
    """Return the answer for a pod whose cycle failed, or where nothing could be judged at all."""
    return {"id": scenario, "pod": pod, "error": problem, "feasible": []}


def answer(scenario: str, pod: str, judgement: Judgement) -> Answer:
    said: Answer = {"id": scenario, "pod": pod}
    if judgement.pre_filter is not None:
        # What was said of the pod is said of every node; there is no verdict node by node.
        said["preFilter"] = _verdict(judgement.pre_filter)
    elif judgement.rejected:
        said["rejected"] = {
            node: _verdict(judgement.rejected[node]) for node in sorted(judgement.rejected)
        }
    said["feasible"] = sorted(judgement.feasible)
    if judgement.feasible:
        said["scores"] = {
            node: {TOTAL: judgement.totals[node]} | dict(sorted(judgement.scores[node].items()))
            for node in sorted(judgement.feasible)
        }
    if judgement.preemption is not None:
        said |= _preemption(judgement.preemption)
    if judgement.diagnosis is not None:
        said["message"] = judgement.diagnosis.message()
    return said


def _verdict(verdict: Verdict) -> dict[str, Any]:
    outside = verdict.plugin == PRE_FILTER_RESULT
    return {
        "plugin": verdict.plugin,
        "code": _RESOLVABLE[verdict.resolvable],
        "reasons": None if outside else [reason.text for reason in verdict.reasons],
    }


def _preemption(preemption: Preemption) -> Answer:
    said: Answer = {}
    if preemption.candidates:
        said["preemption"] = {
            node: {
                "victims": list(preemption.candidates[node].victims),
                "pdbViolations": preemption.candidates[node].pdb_violations,
            }
            for node in sorted(preemption.candidates)
        }
    if preemption.picks:
        said["preemptionPicks"] = sorted(preemption.picks)
    if preemption.not_eligible:
        said["preemptionNotEligible"] = preemption.not_eligible
    if preemption.error:
        said["error"] = preemption.error
    return said
