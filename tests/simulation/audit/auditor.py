"""Goes through a history once and says which rules were broken."""

from tests.simulation.audit.binding import Bindings
from tests.simulation.audit.feasibility import forgotten_pods
from tests.simulation.audit.leading import Evictions, Leading
from tests.simulation.audit.restoring import Restores
from tests.simulation.audit.scene import Audience, Check, Scene, Violation
from tests.simulation.audit.telling import Deeds, Telling
from tests.simulation.history import Happened, History
from tests.simulation.plan import Plan
from tests.simulation.server import ModelServer

__all__ = ["Violation", "audit"]


class Health(Check):
    """A daemon that fails by itself, or says that it has decided wrongly, is a violation."""

    def happened(self, entry: Happened) -> None:
        if entry.what == "alarm":
            self.scene.break_rule("no daemon fails by itself", f"{entry.client} {entry.detail}")


def audit(
    history: History, server: ModelServer, plan: Plan
) -> tuple[list[Violation], dict[str, int]]:
    """Return what was broken, and what was counted."""
    scene = Scene(plan)
    checks: list[Check] = [
        Bindings(scene),
        Leading(scene),
        Evictions(scene),
        Telling(scene),
        Deeds(scene),
        Restores(scene),
        Health(scene),
    ]
    audience = Audience(checks)
    for entry in history.entries:
        scene.feed(entry)
        audience.tell(entry)
    for check in checks:
        check.finish()
    for lost in forgotten_pods(server):
        scene.break_rule("no pod lost", f"{lost} has room, and it is pending")
    return scene.violations, scene.counts
