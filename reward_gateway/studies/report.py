"""What a replay came to: who decided, how often against Lean, what was withheld, and the time and hours it took."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reward_gateway.studies.cohort import NO, YES, Cohort, Predictions
from reward_gateway.studies.replay import Options, Replay
from services.contracts.outcomes import LeanStatus, Reason, Source, Verdict

REST_S = 630.0
"""Generation and policy update of a training step (learning-lean-feedback, Appendix E)."""
GPUS = 8
"""H100s of the paper's training runs, which also run the evaluator."""


@dataclass(frozen=True, slots=True)
class Report:
    """Shares are parts of all candidates unless said otherwise; None where there is nothing to measure on.

    Attributes:
        lean_share, evaluator_share, precheck_share, unknown_share: who decided; they add up to 1.
        labelled: candidates with Lean's verdict within the limit of the recording; the next five are measured on them.
        agreement: the part whose verdict is Lean's; an unknown does not agree.
        false_positives, false_negatives: valid where Lean says invalid, and the reverse.
        wrong_share: both together.
        evaluator_accuracy, evaluator_true_positive, evaluator_false_positive: of the predictions alone.
        timeouts, timeout_share: checks that ran into their limit before the cutoff; the share is of those asked.
        withheld: candidates without any verdict because of such a timeout. `withheld_valid`: of these, the ones that a
            longer budget proved valid.
        scoring_s: from a batch to its cutoff, mean. `step_s`: with the rest of a training step (equation 9).
        lean_busy_h, lean_pool_h: hours of Lean workers a step, working and reserved until the cutoff.
        evaluator_gpu_h, step_gpu_h: GPU hours a step, of the evaluator until the cutoff, and of the whole step: what
            trains waits while a batch is scored, whoever scores it.
    """

    candidates: int
    batches: int
    workers: int
    timeout_s: float
    lean_share: float
    evaluator_share: float
    precheck_share: float
    unknown_share: float
    labelled: int
    agreement: float | None
    false_positives: int
    false_negatives: int
    wrong_share: float | None
    evaluator_accuracy: float | None
    evaluator_true_positive: float | None
    evaluator_false_positive: float | None
    timeouts: int
    timeout_share: float
    withheld: int
    withheld_valid: int
    scoring_s: float
    scoring_longest_s: float
    step_s: float
    lean_busy_h: float
    lean_pool_h: float
    evaluator_gpu_h: float
    step_gpu_h: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def make_report(
    cohort: Cohort,
    options: Options,
    predictions: Predictions | None,
    came: Replay,
    *,
    rest_s: float = REST_S,
    gpus: int = GPUS,
) -> Report:
    """Summarise a replay; `gpus` is how many a training step holds, the evaluator's included."""
    count = max(len(cohort), 1)
    sources = [decision.source for decision in came.decisions]
    verdict = np.array([_number(decision.verdict) for decision in came.decisions], dtype=np.int64)
    labelled, truth = cohort.labelled, cohort.verdict
    wrong_yes = int((labelled & (verdict == YES) & (truth == NO)).sum())
    wrong_no = int((labelled & (verdict == NO) & (truth == YES)).sum())
    withheld = np.array(
        [d.verdict is Verdict.UNKNOWN and d.reason is Reason.LEAN_TIMEOUT for d in came.decisions], dtype=bool
    )
    timeouts = sum(decision.lean_status is LeanStatus.TIMEOUT for decision in came.decisions)
    scoring_s = float(came.scoring_s.mean())
    steps = max(cohort.batches, 1)
    return Report(
        candidates=len(cohort),
        batches=cohort.batches,
        workers=options.workers,
        timeout_s=options.timeout_s,
        lean_share=sources.count(Source.LEAN) / count,
        evaluator_share=sources.count(Source.CASCADE) / count,
        precheck_share=sources.count(Source.PRECHECK) / count,
        unknown_share=sources.count(Source.FALLBACK) / count,
        labelled=int(labelled.sum()),
        agreement=_part((labelled & (verdict == truth)).sum(), labelled.sum()),
        false_positives=wrong_yes,
        false_negatives=wrong_no,
        wrong_share=_part(wrong_yes + wrong_no, labelled.sum()),
        **_of_evaluator(cohort, predictions),
        timeouts=timeouts,
        timeout_share=timeouts / max(int(cohort.asked.sum()), 1),
        withheld=int(withheld.sum()),
        withheld_valid=int((withheld & (truth == YES)).sum()),
        scoring_s=scoring_s,
        scoring_longest_s=float(came.scoring_s.max()),
        step_s=rest_s + scoring_s,
        lean_busy_h=float(came.busy_s.sum()) / steps / 3600,
        lean_pool_h=options.workers * scoring_s / 3600,
        evaluator_gpu_h=gpus * float(np.minimum(came.evaluator_s, came.scoring_s).mean()) / 3600,
        step_gpu_h=gpus * (rest_s + scoring_s) / 3600,
    )


def _of_evaluator(cohort: Cohort, predictions: Predictions | None) -> dict[str, float | None]:
    if predictions is None:
        return dict.fromkeys(("evaluator_accuracy", "evaluator_true_positive", "evaluator_false_positive"))
    said, truth = predictions.verdict, cohort.verdict
    on = cohort.labelled & (said >= 0)
    return {
        "evaluator_accuracy": _part((on & (said == truth)).sum(), on.sum()),
        "evaluator_true_positive": _part((on & (said == YES) & (truth == YES)).sum(), (on & (truth == YES)).sum()),
        "evaluator_false_positive": _part((on & (said == YES) & (truth == NO)).sum(), (on & (truth == NO)).sum()),
    }


def _number(verdict: Verdict) -> int:
    return {Verdict.VALID: YES, Verdict.INVALID: NO}.get(verdict, -1)


def _part(count: float, of: float) -> float | None:
    return float(count) / float(of) if of else None
