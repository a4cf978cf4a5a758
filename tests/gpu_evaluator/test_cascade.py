from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_evaluator.cascade import SELF_CONSISTENCY, CascadeRule, decide_feedback, decide_gate
from gpu_evaluator.engines.base import EngineFault, Generation, OverLength, Sampling
from services.contracts.outcomes import Reason, Verdict

GOOD = Generation("theorem t : True := trivial", hit_limit=False)
BAD = Generation("theorem t : True := x\n/- <feedback>\n-- type: error, msg: no\n</feedback> -/", hit_limit=False)
CUT = Generation(GOOD.text, hit_limit=True)


def test_the_gate_rejects_below_its_threshold_and_passes_at_it() -> None:
    rejected = decide_gate(0.499, CascadeRule())
    assert rejected is not None
    assert (rejected.verdict, rejected.reason, rejected.gate) == (Verdict.INVALID, Reason.GATE_REJECTED, 0.499)
    assert decide_gate(0.5, CascadeRule()) is None


def test_a_fault_of_an_engine_is_unknown_and_never_a_rejection() -> None:
    gate = decide_gate(EngineFault("gone"), CascadeRule())
    feedback = decide_feedback(0.9, EngineFault("gone"), CascadeRule(), "p")
    assert gate is not None
    for prediction in (gate, feedback):
        assert (prediction.verdict, prediction.reason) == (Verdict.UNKNOWN, Reason.INFRASTRUCTURE)


@pytest.mark.parametrize(("trace", "verdict"), [(GOOD, Verdict.VALID), (BAD, Verdict.INVALID), (CUT, Verdict.INVALID)])
def test_one_greedy_trace_decides_what_passed_the_gate(trace: Generation, verdict: Verdict) -> None:
    prediction = decide_feedback(0.8, (trace,), CascadeRule(), "p")
    assert (prediction.verdict, prediction.feedback, prediction.gate) == (verdict, verdict, 0.8)


def test_a_program_that_does_not_fit_the_feedback_model_is_rejected() -> None:
    assert decide_feedback(0.9, OverLength("too many tokens"), CascadeRule(), "p").verdict is Verdict.INVALID


@given(st.lists(st.sampled_from([GOOD, BAD, CUT]), min_size=5, max_size=5))
def test_self_consistency_accepts_with_four_of_five(traces: list[Generation]) -> None:
    prediction = decide_feedback(0.6, tuple(traces), SELF_CONSISTENCY, "p")
    assert (prediction.verdict is Verdict.VALID) == (traces.count(GOOD) >= 4)


def test_rules_that_cannot_be_met_are_refused() -> None:
    with pytest.raises(ValueError, match="quorum"):
        CascadeRule(sampling=Sampling(samples=3), quorum=4)
    with pytest.raises(ValueError, match="threshold"):
        CascadeRule(threshold=1.5)
