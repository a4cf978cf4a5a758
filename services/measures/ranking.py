"""How well scores rank valid programs above invalid ones: AUROC with half credit for ties, and the ROC curve."""

from __future__ import annotations

import numpy as np

from services.measures.confusion import Flags, Numbers


class Ranking:
    """Scores (n,) of programs and their validity (n,), sorted once. Raises `ValueError` for a score that is NaN."""

    def __init__(self, valid: Flags, scores: Numbers) -> None:
        if np.isnan(scores).any():
            raise ValueError("a program without a score cannot be ranked")
        self._order = np.argsort(scores, kind="stable")
        self._valid = valid[self._order]
        ordered = scores[self._order]
        self._starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, int)
        self._scores = ordered[self._starts]

    def auroc(self, weights: Numbers | None = None) -> Numbers:
        """The chance that a valid program scores above an invalid one, a tie counting one half.

        Args:
            weights: (..., n) how often each program counts, by default once.

        Returns:
            (...); NaN where one of the classes is empty.
        """
        if not len(self._valid):
            return np.full(() if weights is None else weights.shape[:-1], np.nan)
        each = np.ones(len(self._valid)) if weights is None else weights[..., self._order]
        positive = np.add.reduceat(each * self._valid, self._starts, axis=-1)
        negative = np.add.reduceat(each * ~self._valid, self._starts, axis=-1)
        below = np.cumsum(negative, axis=-1) - negative
        won = (positive * (below + negative / 2)).sum(axis=-1)
        pairs = positive.sum(axis=-1) * negative.sum(axis=-1)
        return np.asarray(np.divide(won, pairs, out=np.full(np.shape(pairs), np.nan), where=pairs != 0))

    def curve(self) -> tuple[Numbers, Numbers]:
        """(false-positive rates, true-positive rates) at every threshold, from accepting nothing to everything.

        Raises `ValueError` where one of the classes is empty.
        """
        valid = int(self._valid.sum())
        invalid = len(self._valid) - valid
        if not valid or not invalid:
            raise ValueError("a ROC curve needs valid and invalid programs")
        positive = np.add.reduceat(self._valid.astype(float), self._starts)[::-1]
        negative = np.add.reduceat((~self._valid).astype(float), self._starts)[::-1]
        return np.r_[0.0, np.cumsum(negative)] / invalid, np.r_[0.0, np.cumsum(positive)] / valid
