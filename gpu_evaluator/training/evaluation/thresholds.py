"""Thresholds selected on validation data, on a grid of 0.01 (learning-lean-feedback, Appendix G)."""

from __future__ import annotations

import numpy as np

from gpu_evaluator.training.evaluation.confusion import Counts, Flags, Numbers, false_positive_rate, mcc, recall

GRID: Numbers = np.arange(101) / 100
"""0, 0.01, ... 1, each the float that is written so."""


def counts_by_threshold(valid: Flags, scores: Numbers, eligible: Flags | None = None, grid: Numbers = GRID) -> Counts:
    """Counts at each threshold of the grid: a program is accepted when its score is not below it.

    Args:
        valid, scores: (n,) each, the scores without NaN.
        eligible: (n,) programs that another stage accepts too; the others are rejected at every threshold.

    Returns:
        `Counts` of arrays of the grid's shape.
    """
    if np.isnan(scores).any():
        raise ValueError("a program without a score has no place beside a threshold")
    accepts = np.ones(len(valid), dtype=bool) if eligible is None else eligible
    found = _at_least(scores[valid & accepts], grid)
    fooled = _at_least(scores[~valid & accepts], grid)
    return Counts(found, fooled, float((~valid).sum()) - fooled, float(valid.sum()) - found)


def best_mcc(counts: Counts, grid: Numbers = GRID) -> float:
    """The threshold of the largest MCC; of equal ones the lowest, which keeps the most valid programs."""
    return float(grid[np.argmax(mcc(counts))])


def matched_false_positive_rate(counts: Counts, target: float, grid: Numbers = GRID) -> float | None:
    """The threshold whose false-positive rate is nearest to `target`; of equal ones the lowest, of the best recall.

    None without invalid programs.
    """
    distance = np.abs(false_positive_rate(counts) - target)
    return None if np.isnan(distance).any() else float(grid[np.argmin(distance)])


def matched_recall(counts: Counts, target: float, grid: Numbers = GRID) -> float | None:
    """The threshold whose recall is nearest to `target`; of equal ones the highest, of the lowest false-positive rate.

    The lowest would compare with a gate that accepts every program wherever `target` is 1. None without valid programs.
    """
    distance = np.abs(recall(counts) - target)
    return None if np.isnan(distance).any() else float(grid[::-1][np.argmin(distance[::-1])])


def _at_least(scores: Numbers, grid: Numbers) -> Numbers:
    """(grid,) how many scores are not below each threshold."""
    return (len(scores) - np.searchsorted(np.sort(scores), grid, side="left")).astype(float)
