"""Scores as a plugin gave them become scores from 0 to 100."""

import numpy as np

from k8s_scheduler.core.framework.plugin import MAX_SCORE
from k8s_scheduler.core.framework.plugin_errors import PluginError, blame
from k8s_scheduler.core.framework.profile import ScoreStep
from k8s_scheduler.core.framework.views.base import FEW, Scores, extremes


def normalized(step: ScoreStep, scores: Scores) -> Scores:
    """Return scores from 0 to 100, or say which plugin broke its contract."""
    if step.normalize is not None:
        try:
            scores = step.normalize(scores)
        except Exception as error:
            raise blame(error, step.name, "Score") from error
    if len(scores) > FEW:
        # As unsigned numbers the negative ones are the largest: one look is enough.
        unsigned = scores.view(np.uint64)
        if unsigned[unsigned.argmax()] <= MAX_SCORE:
            return scores
    low, high = extremes(scores)
    if low < 0 or high > MAX_SCORE:
        raise PluginError(
            step.name,
            "Score",
            f'plugin "{step.name}" returns an invalid score {low if low < 0 else high}, '
            "it should in the range of [0, 100] after normalizing",
        )
    return scores
