"""How well scores rank valid programs above invalid ones: AUROC with half credit for ties, and the ROC curve."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpu_evaluator.training.evaluation.confusion import Flags, Numbers

Places = npt.NDArray[np.int64]


class Ranking:
    """Scores (n,) of programs and their validity (n,), sorted once. Raises `ValueError` for a score that is NaN."""

    def __init__(self, valid: Flags, scores: Numbers) -> None:
        if np.isnan(scores).any():
            raise ValueError("a program without a score cannot be ranked")
        invalid = np.flatnonzero(~valid)
        self._valid, self._invalid = np.flatnonzero(valid), invalid[np.argsort(scores[invalid], kind="stable")]
        below = scores[self._invalid]
        # Of the invalid programs in order: how many score below each valid one, and how many not above it.
        self._below = np.searchsorted(below, scores[self._valid], side="left")
        self._not_above = np.searchsorted(below, scores[self._valid], side="right")
        self._scores = scores

    def auroc(self, weights: Numbers | None = None, places: Places | None = None) -> Numbers:
        """The chance that a valid program scores above an invalid one, a tie counting one half.

        Args:
            weights: (..., m) how often each program counts, by default once.
            places: (n,) the column of `weights` for each program, by default its own.

        Returns:
            (...); NaN where one of the classes is empty.
        """
        each = np.ones(len(self._scores)) if weights is None else weights
        own = np.arange(len(self._scores)) if places is None else places
        valid = each[..., own[self._valid]]
        beaten = np.zeros((*each.shape[:-1], len(self._invalid) + 1))
        np.cumsum(each[..., own[self._invalid]], axis=-1, out=beaten[..., 1:])
        won = (valid * (beaten[..., self._below] + beaten[..., self._not_above])).sum(axis=-1) / 2
        pairs = valid.sum(axis=-1) * beaten[..., -1]
        return np.asarray(np.divide(won, pairs, out=np.full(np.shape(pairs), np.nan), where=pairs != 0))

    def curve(self) -> tuple[Numbers, Numbers]:
        """(false-positive rates, true-positive rates) at every threshold, from accepting nothing to everything.

        Raises `ValueError` where one of the classes is empty.
        """
        if not len(self._valid) or not len(self._invalid):
            raise ValueError("a ROC curve needs valid and invalid programs")
        thresholds = np.unique(self._scores)[::-1]
        rates = []
        for members in (self._invalid, self._valid):
            scores = np.sort(self._scores[members])
            accepted = len(scores) - np.searchsorted(scores, thresholds, side="left")
            rates.append(np.r_[0.0, accepted / len(scores)])
        return rates[0], rates[1]
