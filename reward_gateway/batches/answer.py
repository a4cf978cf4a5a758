"""A finished batch as the bytes of its `ScoreResponse`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from reward_gateway.batches.prepare import Prepared, Unusable
from reward_gateway.batches.state import BatchState, Cut, Predicted
from reward_gateway.pace import Pace
from services.contracts.base import Wire
from services.contracts.lean import LeanOutcome, Message, Position
from services.contracts.outcomes import LeanStatus, Reason, Source, Verdict
from services.contracts.proofs import (
    Candidate,
    CandidateResult,
    CutoffReport,
    Degradation,
    EvaluatorReport,
    LeanReport,
    ScoreStats,
)
from services.proofs.positions import shifted
from services.proofs.precheck import Rejection
from services.rewards.merge import Decision, EvaluatorAnswer, Evidence, LeanAnswer, merge

_RESULTS = TypeAdapter(list[CandidateResult])
_CHUNK = 128
_EVALUATORS_REASONS = (Reason.EVALUATOR_DISTRUSTED, Reason.NOT_DECIDED)


class _Head(Wire):
    """The members of a `ScoreResponse` before `results`."""

    batch_id: str
    cutoff: CutoffReport


class _Tail(Wire):
    """The members of a `ScoreResponse` after `results`."""

    stats: ScoreStats
    degraded: tuple[Degradation, ...]


@dataclass(slots=True)
class Tally:
    """What a batch came to, for metrics."""

    decisions: dict[tuple[Source, Verdict, LeanStatus], int] = field(default_factory=dict)
    unknown: dict[Reason, int] = field(default_factory=dict)
    lean: int = 0
    predicted: int = 0

    def add(self, decision: Decision, *, predicted: bool = False) -> None:
        kind = (decision.source, decision.verdict, decision.lean_status)
        self.decisions[kind] = self.decisions.get(kind, 0) + 1
        self.lean += decision.source is Source.LEAN
        self.predicted += predicted
        if decision.verdict is Verdict.UNKNOWN:
            self.unknown[decision.reason] = self.unknown.get(decision.reason, 0) + 1


@dataclass(frozen=True, slots=True)
class Answer:
    """The response's JSON, and the batch in numbers."""

    body: bytes
    stats: ScoreStats
    cut: Cut
    tally: Tally
    degraded: tuple[Degradation, ...]


async def make_answer(
    batch_id: str, state: BatchState, cut: Cut, clock: Callable[[], float], distrusted: Collection[str] = ()
) -> Answer:
    """Merge every candidate at the cutoff and write the answer, in the order of the candidates.

    `distrusted`: models whose predictions of `valid` give no reward.
    """
    pace, tally = Pace(), Tally()
    parts: list[bytes] = []
    rows = _results(state, cut, tally, distrusted)
    while chunk := [row for _, row in zip(range(_CHUNK), rows, strict=False)]:
        parts.append(_RESULTS.dump_json(chunk)[1:-1])
        await pace.rest()
    stats = ScoreStats(
        candidates=len(state.candidates),
        prechecked=state.rejected,
        cached=len(state.cached),
        duplicates=state.duplicates,
        predicted=tally.predicted,
        lean_share=tally.lean / len(state.candidates),
        elapsed_s=round(clock() - state.received_at, 6),
    )
    degraded = tuple(
        part
        for part, missing in (
            (Degradation.LEAN_UNAVAILABLE, state.lean_was_missing),
            (Degradation.EVALUATOR_UNAVAILABLE, state.evaluator_was_missing),
        )
        if missing
    )
    head = _Head(batch_id=batch_id, cutoff=CutoffReport(reason=cut.reason, at_s=round(cut.at_s, 6)))
    tail = _Tail(stats=stats, degraded=degraded)
    body = b'%s,"results":[%s],%s' % (
        head.model_dump_json().encode()[:-1],
        b",".join(parts),
        tail.model_dump_json().encode()[1:],
    )
    return Answer(body, stats, cut, tally, degraded)


def _results(state: BatchState, cut: Cut, tally: Tally, distrusted: Collection[str]) -> Iterator[CandidateResult]:
    without_lean, rewards = state.without_lean(), state.plan.rewards
    for candidate, prepared in zip(state.candidates, state.prepared, strict=True):
        if isinstance(prepared, Rejection):
            decision = merge(Evidence(precheck=prepared.reason), cut.at_s, rewards)
            tally.add(decision)
            yield _rejected(candidate, prepared, decision)
        elif isinstance(prepared, Unusable):
            unusable = LeanAnswer(_unusable(prepared.detail), at_s=0.0)
            decision = merge(Evidence(lean=unusable), cut.at_s, rewards)
            tally.add(decision)
            yield _checked(candidate, 0, decision, None, None)
        else:
            predicted = state.predictions.get(prepared.task.code)
            if predicted is not None and predicted.at_s > cut.at_s:
                predicted = None
            word, why = _word(state, prepared, predicted, distrusted)
            evidence = Evidence(lean=state.answers.get(prepared.key), prediction=word, without_lean=without_lean)
            decision = merge(evidence, cut.at_s, rewards)
            tally.add(decision, predicted=predicted is not None)
            yield _checked(candidate, prepared.shift, decision, predicted, why)


def _word(
    state: BatchState, prepared: Prepared, predicted: Predicted | None, distrusted: Collection[str]
) -> tuple[EvaluatorAnswer | None, str | None]:
    """What the evaluator says about a candidate, as far as a reward may rest on it, and why so."""
    if predicted is None:
        failed = EvaluatorAnswer(Verdict.UNKNOWN, Reason.INFRASTRUCTURE, 0.0) if state.evaluator_was_missing else None
        return failed, None
    prediction = predicted.prediction
    if prediction.verdict is Verdict.VALID and predicted.model in distrusted:
        why = "predicted valid, and the audit shows too many false positives"
        return EvaluatorAnswer(Verdict.UNKNOWN, Reason.EVALUATOR_DISTRUSTED, predicted.at_s), why
    if prediction.verdict is Verdict.VALID and prepared.key in state.misstated:
        why = (
            "predicted valid, and the program does not hold the statement word for word, so that only Lean can judge it"
        )
        return EvaluatorAnswer(Verdict.UNKNOWN, Reason.NOT_DECIDED, predicted.at_s), why
    return EvaluatorAnswer(prediction.verdict, prediction.reason, predicted.at_s), prediction.detail


def _unusable(detail: str) -> LeanOutcome:
    return LeanOutcome(
        status=LeanStatus.SKIPPED,
        verdict=Verdict.UNKNOWN,
        reason=Reason.STATEMENT_INVALID,
        detail=detail,
    )


def _rejected(candidate: Candidate, rejection: Rejection, decision: Decision) -> CandidateResult:
    return CandidateResult(
        id=candidate.id,
        group=candidate.group,
        verdict=decision.verdict,
        reward=decision.reward,
        source=decision.source,
        reason=decision.reason,
        detail=rejection.detail,
        position=rejection.position,
        lean=LeanReport(status=decision.lean_status),
    )


def _checked(
    candidate: Candidate, shift: int, decision: Decision, predicted: Predicted | None, why: str | None
) -> CandidateResult:
    """`why`: what there is to say about the prediction."""
    outcome = decision.lean
    by_evaluator = decision.source is Source.CASCADE or decision.reason in _EVALUATORS_REASONS
    told = None if by_evaluator else outcome
    return CandidateResult(
        id=candidate.id,
        group=candidate.group,
        verdict=decision.verdict,
        reward=decision.reward,
        source=decision.source,
        reason=decision.reason,
        detail=why if by_evaluator else None if told is None else told.detail,
        position=None if told is None else _shifted(told.position, shift),
        lean=_report(decision.lean_status, outcome, shift),
        evaluator=None if predicted is None else _said(predicted),
    )


def _said(predicted: Predicted) -> EvaluatorReport:
    prediction = predicted.prediction
    return EvaluatorReport(
        gate=prediction.gate, feedback=prediction.feedback, trace=prediction.trace, model=predicted.model
    )


def _report(status: LeanStatus, outcome: LeanOutcome | None, shift: int) -> LeanReport:
    if outcome is None:
        return LeanReport(status=status)
    return LeanReport(
        status=status,
        elapsed_s=None if status is LeanStatus.SKIPPED else outcome.elapsed_s,
        axioms=outcome.axioms,
        statement_match=outcome.statement_match,
        messages=tuple(_moved(message, shift) for message in outcome.messages) if shift else outcome.messages,
    )


def _moved(message: Message, shift: int) -> Message:
    return message.model_copy(update={"pos": _shifted(message.pos, shift), "end_pos": _shifted(message.end_pos, shift)})


def _shifted(position: Position | None, lines: int) -> Position | None:
    """A position in the caller's text, when `lines` of header stand before it; None inside the header."""
    if position is None or position.line <= lines:
        return None
    return shifted(position, lines)
