"""Normalisation that several score plugins share: kube-scheduler's default."""

import numpy as np

from k8s_scheduler.core.framework.plugin import MAX_SCORE
from k8s_scheduler.core.framework.views import Scores


def default_normalize(scores: Scores, *, reverse: bool) -> Scores:
    """Scale so that the largest score becomes 100, or 0 when reversed; the minimum is no anchor."""
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    scaled = scores * MAX_SCORE // highest
    return MAX_SCORE - scaled if reverse else scaled
