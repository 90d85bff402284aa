"""What callers of a core look at: what it holds, how it judges, and what a judgement raises.

Together with `scheduler`, `setup` and `messages` this is the door of the core: the packages around
it import nothing else of it, and `.importlinter` checks that.
"""

from k8s_scheduler.core.engine.checks.holdings import Holdings
from k8s_scheduler.core.engine.checks.judging import Judgement, Preemption
from k8s_scheduler.core.engine.decision.sampling import MIN_NODES, nodes_to_find
from k8s_scheduler.core.engine.limiting import OverLimitError
from k8s_scheduler.core.engine.shapes.tally import Tally
from k8s_scheduler.core.framework.evaluation.node_sets import PRE_FILTER_RESULT
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.queue.queued_pod import QueuedPod

__all__ = [
    "MIN_NODES",
    "PRE_FILTER_RESULT",
    "Holdings",
    "Judgement",
    "OverLimitError",
    "PluginError",
    "Preemption",
    "QueuedPod",
    "Tally",
    "Verdict",
    "nodes_to_find",
]
