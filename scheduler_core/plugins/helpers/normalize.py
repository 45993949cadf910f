"""The normalisation that most score plugins use."""

from __future__ import annotations

import numpy as np

from scheduler_core.framework.interface import MAX_NODE_SCORE, Scores

__all__ = ["default_normalize"]


def default_normalize(scores: Scores, *, reverse: bool = False) -> Scores:
    """Scale raw scores so that the largest becomes 100 (kube-scheduler 1.36,
    ``DefaultNormalizeScore``).

    Args:
        scores: int64, shape (n,), all >= 0.
        reverse: the largest raw score becomes 0, and 0 becomes 100.

    Returns:
        int64, shape (n,), in 0..100. Where every raw score is 0: all 0, or all 100 if reversed.
    """
    largest = int(scores.max(initial=0))
    if largest == 0:
        return np.full(len(scores), MAX_NODE_SCORE if reverse else 0, dtype=np.int64)
    scaled: Scores = MAX_NODE_SCORE * scores // largest
    return MAX_NODE_SCORE - scaled if reverse else scaled
