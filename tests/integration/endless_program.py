"""k8s-scheduler whose decisions for pods with the label `endless` never end.

Stands for whatever a pod may meet that nobody has thought of: the code that decides is replaced
here, in the test's own program, and the process has to be killed.
"""

import sys
from typing import Any

from k8s_scheduler.cli.main import main
from k8s_scheduler.core.engine.decision.cycle import Cycle
from k8s_scheduler.core.queue.queued_pod import QueuedPod

_decide = Cycle.decide


def _endless(self: Cycle, profile: Any, queued: QueuedPod, *rest: Any) -> Any:
    while "endless" in (queued.pod.metadata.labels or {}):
        pass
    return _decide(self, profile, queued, *rest)


if __name__ == "__main__":
    Cycle.decide = _endless  # type: ignore[method-assign]
    sys.exit(main())
