"""Equation 8 as properties: who decides, and that nothing after the cutoff matters."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from services.contracts.lean import LeanOutcome
from services.contracts.outcomes import LeanStatus, Reason, Source, Verdict
from services.contracts.proofs import RewardMap
from services.rewards.merge import EvaluatorAnswer, Evidence, LeanAnswer, merge, prefer

times = st.integers(0, 8).map(float)  # few values, so that equal times are common
numbers = st.floats(-10, 10)
rewards = st.builds(RewardMap, valid=numbers, invalid=numbers, unknown=st.none() | numbers)


@st.composite
def outcomes(draw: st.DrawFn) -> LeanOutcome:
    status = draw(st.sampled_from(list(LeanStatus)))
    if status is LeanStatus.OK and draw(st.booleans()):
        return LeanOutcome(status=status, verdict=Verdict.UNKNOWN, reason=Reason.STATEMENT_INVALID)
    if status is not LeanStatus.OK:
        return LeanOutcome(status=status, verdict=Verdict.UNKNOWN, reason=Reason.INFRASTRUCTURE)
    verdict = draw(st.sampled_from([Verdict.VALID, Verdict.INVALID]))
    reason = Reason.OK if verdict is Verdict.VALID else draw(st.sampled_from([Reason.COMPILE_ERROR, Reason.AXIOM]))
    return LeanOutcome(status=status, verdict=verdict, reason=reason)


answers = st.builds(LeanAnswer, outcome=outcomes(), at_s=times)
predictions = st.builds(
    EvaluatorAnswer,
    verdict=st.sampled_from(list(Verdict)),
    reason=st.sampled_from([Reason.OK, Reason.GATE_REJECTED, Reason.EVALUATOR_DISTRUSTED, Reason.INFRASTRUCTURE]),
    at_s=times,
)
evidences = st.builds(
    Evidence,
    precheck=st.none() | st.sampled_from([Reason.TOO_LONG, Reason.NO_CODE]),
    lean=st.none() | answers,
    prediction=st.none() | predictions,
    without_lean=st.sampled_from([LeanStatus.CANCELLED, LeanStatus.UNAVAILABLE, LeanStatus.SKIPPED]),
)


@given(evidences, times, rewards)
def test_a_precheck_failure_is_invalid_whatever_else_came(evidence: Evidence, cutoff: float, map_: RewardMap) -> None:
    decision = merge(replace(evidence, precheck=Reason.FORBIDDEN_CONSTRUCT), cutoff, map_)
    assert (decision.verdict, decision.source) == (Verdict.INVALID, Source.PRECHECK)
    assert decision.reward == map_.invalid
    assert decision.lean_status is LeanStatus.SKIPPED


@given(evidences, answers, times, rewards)
def test_lean_at_or_before_the_cutoff_wins(
    evidence: Evidence, answer: LeanAnswer, cutoff: float, map_: RewardMap
) -> None:
    decision = merge(replace(evidence, precheck=None, lean=answer), cutoff, map_)
    if answer.decides and answer.at_s <= cutoff:
        assert (decision.source, decision.verdict) == (Source.LEAN, answer.outcome.verdict)
    else:
        assert decision.source is not Source.LEAN


@given(evidences, times, rewards)
def test_nothing_after_the_cutoff_changes_anything(evidence: Evidence, cutoff: float, map_: RewardMap) -> None:
    in_time = replace(
        evidence,
        lean=evidence.lean if evidence.lean and evidence.lean.at_s <= cutoff else None,
        prediction=evidence.prediction if evidence.prediction and evidence.prediction.at_s <= cutoff else None,
    )
    assert merge(evidence, cutoff, map_) == merge(in_time, cutoff, map_)


@given(st.lists(answers, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_arrival_is_irrelevant(arrived: list[LeanAnswer], random: object) -> None:
    def held(sequence: list[LeanAnswer]) -> LeanAnswer | None:
        answer: LeanAnswer | None = None
        for other in sequence:
            answer = prefer(answer, other)
        return answer

    shuffled = list(arrived)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert held(arrived) == held(shuffled)


@given(evidences, times, rewards)
def test_a_fault_or_an_unknown_is_never_a_zero_unless_the_fallback_says_so(
    evidence: Evidence, cutoff: float, map_: RewardMap
) -> None:
    decision = merge(evidence, cutoff, map_)
    if decision.verdict is Verdict.UNKNOWN:
        assert decision.source is Source.FALLBACK
        assert decision.reward == map_.unknown
    if evidence.precheck is None and decision.verdict is not Verdict.UNKNOWN:
        by_lean = evidence.lean is not None and evidence.lean.decides
        by_cascade = evidence.prediction is not None and evidence.prediction.verdict is not Verdict.UNKNOWN
        assert by_lean or by_cascade


def test_a_timeout_may_use_the_cascade_and_says_so_without_it() -> None:
    timeout = LeanAnswer(
        LeanOutcome(status=LeanStatus.TIMEOUT, verdict=Verdict.UNKNOWN, reason=Reason.LEAN_TIMEOUT), at_s=1.0
    )
    alone = merge(Evidence(lean=timeout), 2.0, RewardMap())
    assert (alone.verdict, alone.reason, alone.reward) == (Verdict.UNKNOWN, Reason.LEAN_TIMEOUT, None)
    predicted = merge(
        Evidence(lean=timeout, prediction=EvaluatorAnswer(Verdict.VALID, Reason.OK, at_s=2.0)), 2.0, RewardMap()
    )
    assert (predicted.verdict, predicted.source, predicted.lean_status) == (
        Verdict.VALID,
        Source.CASCADE,
        LeanStatus.TIMEOUT,
    )


def test_an_unusable_statement_is_not_left_to_the_cascade() -> None:
    outcome = LeanOutcome(status=LeanStatus.OK, verdict=Verdict.UNKNOWN, reason=Reason.STATEMENT_INVALID)
    prediction = EvaluatorAnswer(Verdict.VALID, Reason.OK, at_s=0.5)
    decision = merge(Evidence(lean=LeanAnswer(outcome, 0.5), prediction=prediction), 1.0, RewardMap())
    assert (decision.verdict, decision.source, decision.reason, decision.reward) == (
        Verdict.UNKNOWN,
        Source.FALLBACK,
        Reason.STATEMENT_INVALID,
        None,
    )


@given(predictions, times, rewards, st.sampled_from([LeanStatus.CRASHED, LeanStatus.OK]))
def test_a_check_that_killed_its_workers_is_never_left_to_the_cascade(
    prediction: EvaluatorAnswer, cutoff: float, map_: RewardMap, status: LeanStatus
) -> None:
    reason = Reason.INFRASTRUCTURE if status is LeanStatus.CRASHED else Reason.RESOURCE_EXHAUSTED
    verdict = Verdict.UNKNOWN if status is LeanStatus.CRASHED else Verdict.INVALID
    answer = LeanAnswer(LeanOutcome(status=status, verdict=verdict, reason=reason), at_s=0.0)
    decision = merge(Evidence(lean=answer, prediction=prediction), cutoff, map_)
    assert decision.source is not Source.CASCADE
    assert (decision.verdict, decision.reason) == (verdict, reason)


def test_why_nothing_was_decided() -> None:
    def why(status: LeanStatus, prediction: EvaluatorAnswer | None = None) -> Reason:
        return merge(Evidence(without_lean=status, prediction=prediction), 1.0, RewardMap()).reason

    failed = EvaluatorAnswer(Verdict.UNKNOWN, Reason.INFRASTRUCTURE, at_s=0.5)
    distrusted = EvaluatorAnswer(Verdict.UNKNOWN, Reason.EVALUATOR_DISTRUSTED, at_s=0.5)
    assert why(LeanStatus.CANCELLED) is Reason.NOT_DECIDED
    assert why(LeanStatus.UNAVAILABLE) is Reason.INFRASTRUCTURE
    assert why(LeanStatus.SKIPPED, failed) is Reason.INFRASTRUCTURE
    assert why(LeanStatus.SKIPPED) is Reason.NOT_DECIDED
    assert why(LeanStatus.CANCELLED, distrusted) is Reason.EVALUATOR_DISTRUSTED
