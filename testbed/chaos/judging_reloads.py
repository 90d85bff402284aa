"""Reloads, where the replicas know them: every change of the file was noticed, good or bad."""

from collections.abc import Iterator

from testbed.chaos.evidence import Evidence, Finding
from testbed.chaos.plan import Action

METRIC = "k8s_scheduler_config_reloads_total"


def are_known(evidence: Evidence) -> bool:
    """Whether this build of the scheduler reloads at all."""
    return any(name.startswith(METRIC) for page in evidence.metrics.values() for name in page)


def unnoticed_reloads(evidence: Evidence) -> Iterator[Finding]:
    """Yield kinds of reloads that were made and that no living replica has counted."""
    if not are_known(evidence):
        return
    made = {done.action for done in evidence.done}
    counted = sum(
        value
        for page in evidence.metrics.values()
        for name, value in page.items()
        if name.startswith(METRIC)
    )
    if {Action.GOOD_RELOAD, Action.BAD_RELOAD} & made and not counted:
        yield Finding("reload", "the file changed, and no replica that is left has noticed")
