"""Ways to a verdict that one set of predictions allows: the rows of learning-lean-feedback, Table 3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_evaluator.training.evaluation.confusion import Flags, Numbers, count, false_positive_rate, recall
from gpu_evaluator.training.evaluation.programs import Judged
from gpu_evaluator.training.evaluation.thresholds import (
    GRID,
    best_mcc,
    counts_by_threshold,
    matched_false_positive_rate,
    matched_recall,
)

GATE_THRESHOLD = 0.5
EVALUATOR, GATE, FEEDBACK = "evaluator", "gate", "feedback model"


@dataclass(frozen=True, slots=True)
class Columns:
    """Predictions as arrays, (n,) each; a column that some program lacks is None.

    `annotated`: programs on which the feedback model has spoken, whatever it said.
    """

    valid: Flags
    accepted: Flags
    annotated: Flags
    gate: Numbers | None
    feedback: Flags | None
    score: Numbers | None

    @classmethod
    def of(cls, judged: Sequence[Judged]) -> Columns:
        gates, scores = [j.gate for j in judged], [j.score for j in judged]
        annotated = np.array([j.feedback is not None for j in judged])
        return cls(
            valid=np.array([j.label.valid for j in judged]),
            accepted=np.array([j.accepted for j in judged]),
            annotated=annotated,
            gate=None if None in gates else np.array(gates, dtype=float),
            feedback=np.array([j.feedback for j in judged]) if annotated.all() else None,
            score=None if None in scores else np.array(scores, dtype=float),
        )


@dataclass(frozen=True, slots=True)
class Way:
    """One way: `predicted` (n,) its verdicts, `scores` (n,) what it ranks by, None for a binary decision.

    `threshold` is the gate's; `selected` says how it was selected on validation programs.
    """

    name: str
    predicted: Flags
    scores: Numbers | None = None
    threshold: float | None = None
    selected: str | None = None


def ways(test: Columns, validation: Columns | None) -> list[Way]:
    """The evaluator as it answered, then its stages alone, then what validation programs select."""
    found = [Way(EVALUATOR, test.accepted, test.score)]
    if test.gate is not None:
        found.append(Way(GATE, test.gate >= GATE_THRESHOLD, test.gate, GATE_THRESHOLD))
    if test.feedback is not None:
        found.append(Way(FEEDBACK, test.feedback))
    if validation is None or test.gate is None or validation.gate is None:
        return found
    if validation.valid.all() or not validation.valid.any():
        return found  # one class alone selects nothing
    counts = counts_by_threshold(validation.valid, validation.gate)
    own = count(validation.valid, validation.accepted)
    selections = (
        ("largest MCC", best_mcc(counts)),
        ("evaluator's false-positive rate", matched_false_positive_rate(counts, float(false_positive_rate(own)))),
        ("evaluator's recall", matched_recall(counts, float(recall(own)))),
    )
    for selected, threshold in selections:
        if threshold is not None:
            found.append(Way(GATE, test.gate >= threshold, test.gate, threshold, selected))
    if (threshold := _cascade_threshold(test, validation)) is not None:
        found.append(Way(EVALUATOR, test.accepted & (test.gate >= threshold), None, threshold, "largest MCC"))
    return found


def _cascade_threshold(test: Columns, validation: Columns) -> float | None:
    """The gate's threshold of the cascade with the largest MCC on the validation programs.

    The feedback model was only asked about what passed the gate at its own threshold, so that lower ones cannot be
    tried; the search starts where every program that passes has been annotated, in both sets. None without any.
    """
    if validation.gate is None or test.gate is None or not validation.annotated.any() or not test.annotated.any():
        return None
    unseen = np.concatenate([part.gate[~part.annotated] for part in (validation, test) if part.gate is not None])
    grid = GRID[unseen.max(initial=-1.0) < GRID]
    if not len(grid):
        return None
    return best_mcc(counts_by_threshold(validation.valid, validation.gate, validation.accepted, grid), grid)
