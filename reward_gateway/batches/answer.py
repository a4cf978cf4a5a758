"""A finished batch as the bytes of its `ScoreResponse`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from reward_gateway.batches.prepare import Unusable
from reward_gateway.batches.state import BatchState, Cut
from reward_gateway.pace import Pace
from services.contracts.base import Wire
from services.contracts.lean import LeanOutcome, Message, Position
from services.contracts.outcomes import LeanStatus, Reason, Source, Verdict
from services.contracts.proofs import (
    Candidate,
    CandidateResult,
    CutoffReport,
    Degradation,
    LeanReport,
    ScoreStats,
)
from services.proofs.positions import shifted
from services.proofs.precheck import Rejection
from services.rewards.merge import Decision, Evidence, LeanAnswer, merge

_RESULTS = TypeAdapter(list[CandidateResult])
_CHUNK = 128


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

    def add(self, decision: Decision) -> None:
        kind = (decision.source, decision.verdict, decision.lean_status)
        self.decisions[kind] = self.decisions.get(kind, 0) + 1
        self.lean += decision.source is Source.LEAN
        if decision.verdict is Verdict.UNKNOWN:
            self.unknown[decision.reason] = self.unknown.get(decision.reason, 0) + 1


@dataclass(frozen=True, slots=True)
class Answer:
    """The response's JSON, and the batch in numbers."""

    body: bytes
    stats: ScoreStats
    cut: Cut
    tally: Tally


async def make_answer(batch_id: str, state: BatchState, cut: Cut, clock: Callable[[], float]) -> Answer:
    """Merge every candidate at the cutoff and write the answer, in the order of the candidates."""
    pace, tally = Pace(), Tally()
    parts: list[bytes] = []
    rows = _results(state, cut, tally)
    while chunk := [row for _, row in zip(range(_CHUNK), rows, strict=False)]:
        parts.append(_RESULTS.dump_json(chunk)[1:-1])
        await pace.rest()
    stats = ScoreStats(
        candidates=len(state.candidates),
        prechecked=state.rejected,
        cached=len(state.cached),
        duplicates=state.duplicates,
        lean_share=tally.lean / len(state.candidates),
        elapsed_s=round(clock() - state.received_at, 6),
    )
    degraded = (Degradation.LEAN_UNAVAILABLE,) if state.lean_was_missing else ()
    head = _Head(batch_id=batch_id, cutoff=CutoffReport(reason=cut.reason, at_s=round(cut.at_s, 6)))
    tail = _Tail(stats=stats, degraded=degraded)
    body = b'%s,"results":[%s],%s' % (
        head.model_dump_json().encode()[:-1],
        b",".join(parts),
        tail.model_dump_json().encode()[1:],
    )
    return Answer(body, stats, cut, tally)


def _results(state: BatchState, cut: Cut, tally: Tally) -> Iterator[CandidateResult]:
    without_lean = state.without_lean()
    for candidate, prepared in zip(state.candidates, state.prepared, strict=True):
        if isinstance(prepared, Rejection):
            decision = merge(Evidence(precheck=prepared.reason), cut.at_s, state.plan.rewards)
            tally.add(decision)
            yield _rejected(candidate, prepared, decision)
            continue
        if isinstance(prepared, Unusable):
            answer: LeanAnswer | None = LeanAnswer(_unusable(prepared.detail), at_s=0.0)
            shift = 0
        else:
            answer, shift = state.answers.get(prepared.key), prepared.shift
        decision = merge(Evidence(lean=answer, without_lean=without_lean), cut.at_s, state.plan.rewards)
        tally.add(decision)
        yield _checked(candidate, shift, decision)


def _unusable(detail: str) -> LeanOutcome:
    return LeanOutcome(
        status=LeanStatus.SKIPPED,
        verdict=Verdict.UNKNOWN,
        reason=Reason.STATEMENT_INVALID,
        detail=f"statement: {detail}",
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


def _checked(candidate: Candidate, shift: int, decision: Decision) -> CandidateResult:
    outcome = decision.lean
    told = outcome is not None and decision.source in (Source.LEAN, Source.FALLBACK)
    return CandidateResult(
        id=candidate.id,
        group=candidate.group,
        verdict=decision.verdict,
        reward=decision.reward,
        source=decision.source,
        reason=decision.reason,
        detail=outcome.detail if outcome is not None and told else None,
        position=_shifted(outcome.position, shift) if outcome is not None and told else None,
        lean=_report(decision.lean_status, outcome, shift),
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
