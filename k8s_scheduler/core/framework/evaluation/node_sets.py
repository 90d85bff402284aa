"""Verdicts of PreFilter's node sets: what is said of nodes that are in none, and of empty ones."""

from k8s_scheduler.core.framework.reasons import Reason, Verdict

PRE_FILTER_RESULT = "PreFilterResult"


def nothing_left(plugins: list[str]) -> Verdict:
    """Return the verdict of node sets that have no node in common."""
    if len(plugins) == 1:
        text = f"node(s) didn't satisfy plugin {plugins[0]}"
    else:
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously"
    reason = Reason(code=f"{PRE_FILTER_RESULT}/Empty", text=text)
    return Verdict("", (reason,), resolvable=False, narrowed_by=tuple(sorted(plugins)))


def outside_of(plugins: tuple[str, ...]) -> Verdict:
    """Return the verdict of a node that is in no node set."""
    text = f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"
    reason = Reason(code=f"{PRE_FILTER_RESULT}/Outside", text=text)
    return Verdict(PRE_FILTER_RESULT, (reason,), resolvable=False, narrowed_by=plugins)
