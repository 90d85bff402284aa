"""Pods of one spec: those that answer all questions alike share an evaluation."""

from dataclasses import dataclass, field

from k8s_scheduler.core.engine.shapes.evaluation import Evaluation
from k8s_scheduler.core.framework.views.answers import Answers, Inquiry
from k8s_scheduler.core.framework.views.pod_view import Questions
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.protocols import Tables


@dataclass(slots=True)
class Family:
    """The shapes of one spec."""

    members: dict[Answers, Evaluation] = field(default_factory=dict)
    # Answers that were given once; the second time a shape is worth keeping.
    seen: dict[Answers, int] = field(default_factory=dict)
    _inquiry: Inquiry = field(default_factory=Inquiry)

    @property
    def questions(self) -> Questions:
        """What was asked."""
        return self._inquiry.questions

    def answers(self, state: Tables, queued: QueuedPod) -> Answers:
        """Return what the pod answers to all questions."""
        if self._inquiry.renew():
            # Something was asked that no pod was asked before: all have to answer anew.
            self.members.clear()
            self.seen.clear()
        return self._inquiry.answers(state, queued.pod, queued.shape.labels)
