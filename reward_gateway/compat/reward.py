"""From a candidate's result to the one number that a trainer wants, and what is said when nobody decided."""

from __future__ import annotations

from reward_gateway.compat.patience import PASSING
from services.contracts.compat import SampleReward
from services.contracts.outcomes import Reason, Source, Verdict
from services.contracts.problems import ProblemCode
from services.contracts.proofs import CandidateResult
from services.runtime.problems import ProblemError
from services.runtime.settings import CompatSettings

_RETRY_S = 5
_OURS = PASSING | {ProblemCode.INTERNAL_ERROR}


def sample_reward(result: CandidateResult, settings: CompatSettings) -> SampleReward:
    """The reward of a result. Raises `ProblemError` (503) where our own part failed and that is to be an error."""
    if result.reward is not None:
        return SampleReward(
            score=result.reward,
            status="decided",
            verdict=result.verdict,
            source=result.source,
            reason=result.reason,
            detail=result.detail,
        )
    if result.fault_of_the_server and settings.on_failure == "error":
        detail = result.detail or "Lean was not there to decide this sample"
        raise ProblemError(ProblemCode.LEAN_UNAVAILABLE, detail, retry_after_s=_RETRY_S)
    return _fallback(settings, result.verdict, result.reason, result.detail)


def failure_reward(error: ProblemError, settings: CompatSettings) -> SampleReward:
    """The reward where the batch could not be scored. Raises `error` unless it is to be a fallback."""
    if settings.on_failure == "error" or error.code not in _OURS:
        raise error
    return _fallback(settings, Verdict.UNKNOWN, Reason.INFRASTRUCTURE, error.detail)


def _fallback(settings: CompatSettings, verdict: Verdict, reason: Reason, detail: str | None) -> SampleReward:
    return SampleReward(
        score=settings.undecided,
        status="fallback",
        verdict=verdict,
        source=Source.FALLBACK,
        reason=reason,
        detail=detail,
    )
