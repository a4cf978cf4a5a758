"""The cascade: a program is predicted valid only if the gate and the feedback model both accept it.

learning-lean-feedback, Section 4.3. Pure: `decide_gate` and `decide_feedback` turn what the engines answered into a
`Prediction`; `gpu_evaluator.pipeline` moves programs through the engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_evaluator.engines.base import EngineFault, FeedbackAnswer, GateAnswer, Generation, OverLength, Sampling
from gpu_evaluator.feedback.verdict import TraceVerdict, judge_trace
from services.contracts.outcomes import Reason, Verdict

GREEDY = Sampling()
FIVE_SAMPLES = Sampling(samples=5, temperature=0.8)


@dataclass(frozen=True, slots=True)
class CascadeRule:
    """When each stage accepts. Defaults: gate at 0.5 and one greedy trace; four of five for self-consistency."""

    threshold: float = 0.5
    sampling: Sampling = GREEDY
    quorum: int = 1
    tags: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise ValueError("the gate's threshold lies between 0 and 1")
        if not 1 <= self.quorum <= self.sampling.samples:
            raise ValueError("the quorum lies between 1 and the number of samples")


SELF_CONSISTENCY = CascadeRule(sampling=FIVE_SAMPLES, quorum=4)


@dataclass(frozen=True, slots=True)
class CascadePrediction:
    """Both stages' outputs and why the verdict is what it is. `unknown` only for faults that are ours."""

    verdict: Verdict
    reason: Reason
    detail: str
    gate: float | None = None
    feedback: Verdict | None = None
    traces: tuple[Generation, ...] = ()


def decide_gate(answer: GateAnswer, rule: CascadeRule) -> CascadePrediction | None:
    """The prediction that the gate alone makes, or None where the feedback model is asked next."""
    if isinstance(answer, EngineFault):
        return CascadePrediction(Verdict.UNKNOWN, Reason.INFRASTRUCTURE, f"gate: {answer}")
    if answer < rule.threshold:
        detail = f"gate {answer:.3f} is below {rule.threshold:g}"
        return CascadePrediction(Verdict.INVALID, Reason.GATE_REJECTED, detail, gate=answer)
    return None


def accept_by_gate(answer: GateAnswer, rule: CascadeRule) -> CascadePrediction:
    """The prediction of the gate alone, without a feedback model (the one-token classifier of Section 4.1)."""
    if (decided := decide_gate(answer, rule)) is not None:
        return decided
    if isinstance(answer, EngineFault):
        raise TypeError("a fault is decided above")
    detail = f"gate {answer:.3f} is not below {rule.threshold:g}"
    return CascadePrediction(Verdict.VALID, Reason.OK, detail, gate=answer)


def decide_feedback(gate: float, answer: FeedbackAnswer, rule: CascadeRule, program: str) -> CascadePrediction:
    """The prediction for a program that passed the gate with score `gate`, from its traces."""
    if isinstance(answer, EngineFault):
        return CascadePrediction(Verdict.UNKNOWN, Reason.INFRASTRUCTURE, f"feedback model: {answer}", gate=gate)
    if isinstance(answer, OverLength):
        detail = f"the program does not fit the feedback model: {answer}"
        return CascadePrediction(Verdict.INVALID, Reason.FEEDBACK_ERROR, detail, gate, Verdict.INVALID)
    verdicts = [
        judge_trace(generation.text, hit_limit=generation.hit_limit, program=program if rule.tags else None)
        for generation in answer
    ]
    accepted = sum(verdict.valid for verdict in verdicts)
    valid = accepted >= rule.quorum
    verdict = Verdict.VALID if valid else Verdict.INVALID
    reason = Reason.OK if valid else Reason.FEEDBACK_ERROR
    return CascadePrediction(verdict, reason, _explain(verdicts, accepted, rule), gate, verdict, answer)


def _explain(verdicts: Sequence[TraceVerdict], accepted: int, rule: CascadeRule) -> str:
    signs = ", ".join(verdict.sign.value for verdict in verdicts)
    if len(verdicts) == 1:
        return f"trace: {signs}"
    return f"{accepted} of {len(verdicts)} traces accept, {rule.quorum} are needed: {signs}"


__all__ = [
    "FIVE_SAMPLES",
    "GREEDY",
    "SELF_CONSISTENCY",
    "CascadePrediction",
    "CascadeRule",
    "accept_by_gate",
    "decide_feedback",
    "decide_gate",
]
