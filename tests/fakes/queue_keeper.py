"""`k8s-scheduler` with one plugin more, whose arguments name a custom resource. Tests run it.

A pod with the label `queue` is placed only while the object of that name in its namespace is open:
while the field that the arguments name is true.
"""

from typing import ClassVar

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.kinds import custom_kind
from k8s_scheduler.cli.main import main
from k8s_scheduler.core.builtins import BUILT_INS
from k8s_scheduler.core.framework.dependencies import Dependency, Object
from k8s_scheduler.core.framework.plugin import SKIP, Prepared, Reject
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.registry import ProfilePlace, Registration
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView

CLOSED = Reason(code="QueueKeeper/Closed", text="the queue is closed")


class QueueKeeperArgs(PluginArgs, frozen=True):
    """Which resource holds the queues, and the path that says whether one is open."""

    objects: str = ""
    resource: str = ""
    version: str = "v1"
    path: str = "spec.open"


class QueueKeeper:
    """Keeps back the pods of closed queues."""

    name: ClassVar[str] = "QueueKeeper"
    arguments: ClassVar[type[PluginArgs]] = QueueKeeperArgs
    reasons: ClassVar[tuple[Reason, ...]] = (CLOSED,)
    # Known only with the arguments.
    depends_on: tuple[Dependency, ...] = ()

    def __init__(self, args: QueueKeeperArgs) -> None:
        self._path = args.path
        self._kind = custom_kind(
            args.objects, args.resource, version=args.version, paths=[self._path]
        )
        self.depends_on = (Object(self._kind),)

    def prepare(self, pod: PodView, rows: RowsView) -> Prepared:
        """Look the queue up."""
        name = pod.labels.get("queue")
        if name is None:
            return SKIP
        queue = rows.object(self._kind, pod.namespace, name)
        is_open = queue is not None and queue.content.get(self._path) is True
        return SKIP if is_open else Reject((CLOSED,), resolvable=False)

    def filter(self, _term: None, rows: RowsView) -> Codes:
        """Reject nothing: `prepare` has the last word."""
        return rows.passed()


REGISTRATION = Registration(QueueKeeper, place=ProfilePlace.NAMED)

if __name__ == "__main__":
    BUILT_INS[QueueKeeper.name] = REGISTRATION
    main()
