"""What learning-lean-feedback measured, where it says so, and the assumptions that its numbers are held against."""

from __future__ import annotations

from dataclasses import dataclass

from reward_gateway.studies.evaluators import EvaluatorCost, Rates

CANDIDATES, GROUP, WORKERS = 1024, 8, 64
BATCHES = 24  # 24,576 rollouts
TIMEOUT_S, SHORT_TIMEOUT_S = 60.0, 13.0
AUDIT_S = 600.0
EVALUATOR_S = 90.0

ROLLOUTS, NO_CODE, TIMEOUTS, LABELLED = 24_576, 217, 870, 23_489
RESOLVED, RESOLVED_VALID, RECALLED = 797, 463, 371
VALID = 0.639

CASCADE = Rates(0.851, 0.116)
LATE_TRUE_POSITIVE = RECALLED / RESOLVED_VALID

CASCADE_COST = EvaluatorCost(
    fixed_s=EVALUATOR_S - CANDIDATES / 8 * (0.123 + 0.648 * 0.236), candidate_s=0.123 + 0.648 * 0.236
)
"""Equation 13 with the 90 s of the training runs: what gate and traces do not explain is fixed (load, swap, wait)."""


@dataclass(frozen=True, slots=True)
class Relation:
    """One published number. `value` in the unit that `text` says; `where` names the paper's section."""

    name: str
    text: str
    value: float
    where: str


RELATIONS = (
    Relation("timeouts", "timeouts among candidates with code, 60 s limit", TIMEOUTS / (ROLLOUTS - NO_CODE), "App. E"),
    Relation("late_valid", "valid among timeouts that 600 s resolve", RESOLVED_VALID / RESOLVED, "App. E"),
    Relation("true_positive", "cascade, true-positive rate", 0.851, "App. E"),
    Relation("false_positive", "cascade, false-positive rate", 0.116, "App. E"),
    Relation("accuracy", "cascade, accuracy", 0.862, "App. E"),
    Relation("late_recall", "cascade, true-positive rate on timeouts", LATE_TRUE_POSITIVE, "App. E"),
    Relation("lean_share", "Lean share at 90 s, 60 s limit, 64 workers", 0.43, "Sec. 6.1"),
    Relation("agreement", "hybrid agreement with Lean at 90 s", 0.925, "App. E"),
    Relation("scoring_short", "batch time, 13 s limit, 64 workers, s", 90.0, "Sec. 6.1"),
    Relation("scoring", "batch time, 60 s limit, 64 workers, s", 420.0, "Sec. 1"),
    Relation("scaling_64", "verdicts a second, 64 workers over 32", 1.15, "App. A"),
    Relation("scaling_96", "verdicts a second, 96 workers over 64", 1.00, "App. A"),
    Relation("step", "training step, Lean alone, s", 1050.0, "eq. 9"),
    Relation("step_hybrid", "training step, hybrid, s", 720.0, "eq. 9"),
    Relation("saving", "part of a step that hybrid rewards save", 330 / 1050, "eq. 9"),
)
