from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_evaluator.training.evaluation import confusion
from gpu_evaluator.training.evaluation.thresholds import (
    GRID,
    best_mcc,
    counts_by_threshold,
    matched_false_positive_rate,
    matched_recall,
)

score = st.one_of(st.integers(0, 100).map(lambda n: n / 100), st.floats(0, 1))
rows = st.lists(st.tuples(st.booleans(), score, st.booleans()), min_size=1, max_size=30)


def _arrays(given_rows: list[tuple[bool, float, bool]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    valid, scores, eligible = zip(*given_rows, strict=True)
    return np.array(valid), np.array(scores), np.array(eligible)


@given(rows)
def test_counts_at_each_threshold_are_those_of_its_verdicts(given_rows: list[tuple[bool, float, bool]]) -> None:
    valid, scores, eligible = _arrays(given_rows)
    counts = counts_by_threshold(valid, scores, eligible)
    for number in (0, 1, 29, 50, 86, 99, 100):
        plain = confusion.count(valid, (scores >= number / 100) & eligible)
        assert [column[number] for column in counts] == [float(column) for column in plain]


@given(rows, st.floats(0, 1))
def test_selection_is_the_best_of_the_grid(given_rows: list[tuple[bool, float, bool]], target: float) -> None:
    valid, scores, _ = _arrays(given_rows)
    each = [confusion.count(valid, scores >= t) for t in GRID]
    counts = counts_by_threshold(valid, scores)
    values = [float(confusion.mcc(one)) for one in each]
    assert best_mcc(counts) == GRID[values.index(max(values))]
    for select, rate, known, tied in (
        (matched_recall, confusion.recall, valid.any(), max),
        (matched_false_positive_rate, confusion.false_positive_rate, not valid.all(), min),
    ):
        distances = [abs(float(rate(one)) - target) for one in each]
        nearest = [t for t, distance in zip(GRID, distances, strict=True) if distance == min(distances)]
        assert select(counts, target) == (tied(nearest) if known else None)


def test_the_grid_has_the_papers_thresholds_as_they_are_written() -> None:
    assert {0.5, 0.66, 0.82, 0.86, 0.89} <= set(GRID.tolist())
    # A score that reads 0.86 is accepted at 0.86.
    counts = counts_by_threshold(np.array([True]), np.array([0.86]))
    assert (counts.true_positive[86], counts.true_positive[87]) == (1.0, 0.0)


def test_a_missing_score_is_refused() -> None:
    with pytest.raises(ValueError, match="without a score"):
        counts_by_threshold(np.array([True]), np.array([np.nan]))
