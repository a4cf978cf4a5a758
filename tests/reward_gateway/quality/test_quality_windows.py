from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_gateway.quality.guard import Guard
from reward_gateway.quality.pairs import Pair, PairWindow
from reward_gateway.quality.wilson import wilson
from services.contracts.evaluator import Confusion, GuardMode

PAIRS = st.lists(
    st.builds(
        Pair,
        at_s=st.integers(0, 50).map(float),
        model=st.sampled_from(["m1", "m2"]),
        problems=st.sampled_from(["a", "b"]),
        audited=st.booleans(),
        predicted_valid=st.booleans(),
        valid=st.booleans(),
    ),
    max_size=60,
).map(lambda pairs: sorted(pairs, key=lambda pair: pair.at_s))


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(9, 55, 0.0886, 0.2826), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 1, 0.2065, 1.0)],
)
def test_wilson_matches_published_values(successes: int, n: int, low: float, high: float) -> None:
    interval = wilson(successes, n)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-4)
    assert wilson(0, 0) is None


@pytest.mark.parametrize("n", [1, 12, 55, 1000])
def test_wilson_bounds_of_none_and_of_all_are_exact(n: int) -> None:
    none, every = wilson(0, n), wilson(n, n)
    assert none is not None
    assert every is not None
    assert (none.low, every.high) == (0.0, 1.0)


@given(PAIRS)
def test_a_window_counts_exactly_the_pairs_inside_it(pairs: list[Pair]) -> None:
    window = PairWindow(window_s=20.0)
    for pair in pairs:
        window.add(pair)
    now = 55.0
    for model in ("m1", "m2"):
        for audited_only in (False, True):
            inside = [
                p
                for p in pairs
                if p.at_s >= now - 20 and p.model == model and p.problems == "a" and (p.audited or not audited_only)
            ]
            confusion = window.confusion(now, model, problems="a", audited_only=audited_only)
            assert confusion.false_positive == sum(p.predicted_valid and not p.valid for p in inside)
            assert confusion.true_positive == sum(p.predicted_valid and p.valid for p in inside)
            assert confusion.false_negative == sum(not p.predicted_valid and p.valid for p in inside)
            assert confusion.true_negative == sum(not p.predicted_valid and not p.valid for p in inside)


@given(PAIRS)
def test_all_problems_together_are_the_sum_of_the_sources(pairs: list[Pair]) -> None:
    window = PairWindow(window_s=1e9)
    for pair in pairs:
        window.add(pair)
    by_key = {(w.model, w.problems, w.audited_only): w for w in window.windows(60.0)}
    for (model, problems, audited_only), whole in by_key.items():
        if problems == "all":
            parts = [by_key[key] for name in ("a", "b") if (key := (model, name, audited_only)) in by_key]
            assert whole.confusion.true_negative == sum(part.confusion.true_negative for part in parts)
            assert whole.accuracy is not None
            assert whole.accuracy.n == sum(part.accuracy.n for part in parts if part.accuracy)


def test_memory_is_bounded_by_the_limit() -> None:
    window = PairWindow(window_s=1e9, limit=10)
    for at in range(100):
        window.add(Pair(float(at), "m", "a", True, True, True))
    assert window.confusion(100.0, "m", audited_only=True).true_positive == 10


def test_the_guard_needs_evidence_before_it_distrusts() -> None:
    few, many = Confusion(false_positive=2, true_negative=1), Confusion(false_positive=40, true_negative=60)
    assert not Guard(GuardMode.ACT).distrusts(few)
    assert Guard(GuardMode.ACT).distrusts(many)
    assert not Guard(GuardMode.ACT, limit=0.5).distrusts(many)
    assert not Guard(GuardMode.OFF).distrusts(many)
    assert not Guard(GuardMode.ACT).distrusts(Confusion())
