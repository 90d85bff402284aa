"""The terms of the pod that is decided on, while others are counted in.

An evaluation is shared by pods that answer alike what was asked about them. To count promised pods
in, plugins may ask what was never asked: does the selector of a promised pod pick the newcomer?
Only a pod with the same labels answers that rightly, so the terms of plugins that count are
prepared for such a one. The question is taken down, so that from then on only those pods share the
evaluation that answer it alike.
"""

from collections.abc import Mapping

from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.evaluation.trial import counting_steps
from k8s_scheduler.core.framework.plugin import SKIP, Narrow, Reject, Term
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.framework.views.pod_view import PodView, Questions
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.protocols import Tables


class Newcomer:
    """Some terms of an evaluation, as prepared for a pod that can be asked anything."""

    def __init__(self, state: Tables, runtime: Runtime, questions: Questions) -> None:
        self._state = state
        self._runtime = runtime
        self._questions = questions
        # The labels of the pod; what the evaluation has, and what was prepared instead.
        self._labels = b""
        self._made_of: dict[str, Term] = {}
        self._terms: dict[str, Term] = {}

    def terms(
        self, profile: Profile, queued: QueuedPod, terms: Mapping[str, Term]
    ) -> dict[str, Term]:
        """Return the terms, those that count prepared for a pod like this. Do not change them."""
        if self._questions.name:
            # What was said of one may not be right for any other.
            raise NotKeptError("promises")
        labels = queued.shape.labels
        known = self._made_of
        if self._labels != labels or known.keys() != terms.keys():
            return self._prepare(profile, queued, terms)
        if any(known[name] is not term for name, term in terms.items()):
            return self._prepare(profile, queued, terms)
        return self._terms

    def _prepare(
        self, profile: Profile, queued: QueuedPod, terms: Mapping[str, Term]
    ) -> dict[str, Term]:
        # A view of its own: whatever it is asked, whenever that is, is taken down.
        pod = PodView(queued.pod, queued.view.requests, self._questions)
        everywhere = self._state.nodes.present_rows()
        found = dict(terms)
        for step, _ in counting_steps(profile, terms):
            prepared = self._runtime.prepare(step, pod, everywhere)
            if prepared is SKIP or isinstance(prepared, Reject | Narrow | Verdict):
                raise NotKeptError("promises")
            found[step.name] = prepared
        self._labels = queued.shape.labels
        self._made_of, self._terms = dict(terms), found
        return found
