"""The merge at the cutoff (learning-lean-feedback, Appendix E, equation 8).

For each candidate: a precheck failure is invalid; else Lean's verdict, when it was there at or before the cutoff; else
the cascade's, under the same condition; else `unknown` with the caller's fallback. Times are seconds since receipt of
the batch on one monotonic clock. What came after the cutoff is as if it had never come.

The cascade speaks for checks that Lean has not ended and for those that its wall clock ended. A check that killed its
workers gives no verdict at all: else a policy could bring Lean down to be judged by the evaluator alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from services.contracts.lean import LeanOutcome
from services.contracts.outcomes import LeanStatus, Reason, Source, Verdict
from services.contracts.proofs import RewardMap


@dataclass(frozen=True, slots=True)
class LeanAnswer:
    """What Lean said about a candidate, and when it was received."""

    outcome: LeanOutcome
    at_s: float

    @property
    def decides(self) -> bool:
        return self.outcome.status is LeanStatus.OK and self.outcome.verdict is not Verdict.UNKNOWN

    @property
    def leaves_to_cascade(self) -> bool:
        """Lean has ended without a verdict, and not for a reason that keeps everybody from one."""
        return self.outcome.status not in (LeanStatus.OK, LeanStatus.CRASHED) and (
            self.outcome.reason is not Reason.STATEMENT_INVALID
        )


@dataclass(frozen=True, slots=True)
class EvaluatorAnswer:
    """What the cascade predicts for a candidate, and when; `unknown` when it failed or is distrusted."""

    verdict: Verdict
    reason: Reason
    at_s: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything known about one candidate.

    `precheck` is the reason of its failure. `without_lean` says what became of the check if Lean has not answered by
    the cutoff: cancelled, unavailable or skipped.
    """

    precheck: Reason | None = None
    lean: LeanAnswer | None = None
    prediction: EvaluatorAnswer | None = None
    without_lean: LeanStatus = LeanStatus.CANCELLED


@dataclass(frozen=True, slots=True)
class Decision:
    """The final word on one candidate. `lean` is the answer that was in time, whether or not it decided."""

    verdict: Verdict
    source: Source
    reason: Reason
    reward: float | None
    lean_status: LeanStatus
    lean: LeanOutcome | None


def prefer(held: LeanAnswer | None, other: LeanAnswer) -> LeanAnswer:
    """The answer that counts when one candidate was answered twice (a job handed out again after an outage).

    A verdict counts more than none, the earlier more than the later, and at equal times the stricter: the result does
    not depend on which is `held`.
    """
    if held is None:
        return other
    return min(held, other, key=_rank)


def _rank(answer: LeanAnswer) -> tuple[bool, float, bool, str]:
    outcome = answer.outcome
    return (not answer.decides, answer.at_s, outcome.verdict is Verdict.VALID, outcome.model_dump_json())


def merge(evidence: Evidence, cutoff_s: float, rewards: RewardMap) -> Decision:
    """Equation 8 for one candidate."""
    if evidence.precheck is not None:
        return Decision(
            Verdict.INVALID, Source.PRECHECK, evidence.precheck, rewards.invalid, LeanStatus.SKIPPED, lean=None
        )
    lean = evidence.lean if evidence.lean is not None and evidence.lean.at_s <= cutoff_s else None
    status = evidence.without_lean if lean is None else lean.outcome.status
    outcome = None if lean is None else lean.outcome
    if lean is not None and lean.decides:
        verdict = lean.outcome.verdict
        return Decision(verdict, Source.LEAN, lean.outcome.reason, _reward(verdict, rewards), status, outcome)
    if lean is not None and not lean.leaves_to_cascade:
        # The check killed its workers, or the caller's own statement or header cannot be used, so that nobody can say
        # what a proof of it would be.
        return Decision(Verdict.UNKNOWN, Source.FALLBACK, lean.outcome.reason, rewards.unknown, status, outcome)
    prediction = evidence.prediction
    if prediction is not None and prediction.at_s > cutoff_s:
        prediction = None
    if prediction is not None and prediction.verdict is not Verdict.UNKNOWN:
        verdict = prediction.verdict
        return Decision(verdict, Source.CASCADE, prediction.reason, _reward(verdict, rewards), status, outcome)
    reason = _why_unknown(status, prediction)
    return Decision(Verdict.UNKNOWN, Source.FALLBACK, reason, rewards.unknown, status, outcome)


def _reward(verdict: Verdict, rewards: RewardMap) -> float:
    return rewards.valid if verdict is Verdict.VALID else rewards.invalid


def _why_unknown(status: LeanStatus, prediction: EvaluatorAnswer | None) -> Reason:
    if prediction is not None and prediction.reason is Reason.EVALUATOR_DISTRUSTED:
        return Reason.EVALUATOR_DISTRUSTED
    if status is LeanStatus.TIMEOUT:
        return Reason.LEAN_TIMEOUT
    if status is LeanStatus.UNAVAILABLE:
        return Reason.INFRASTRUCTURE
    if prediction is not None and prediction.reason is Reason.INFRASTRUCTURE and status is LeanStatus.SKIPPED:
        return Reason.INFRASTRUCTURE  # the evaluator alone was asked, and it failed
    return Reason.NOT_DECIDED
