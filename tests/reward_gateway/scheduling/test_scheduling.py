from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reward_gateway.scheduling.check_time import SIZE, CheckTimePredictor, features
from reward_gateway.scheduling.order import BatchOrder, valid_probability
from reward_gateway.scheduling.policies import (
    FIRST_STEPS,
    LABEL_PRIORITY,
    STEPS,
    SchedulingPolicy,
    Waiting,
    order,
    steps,
)
from services.contracts.evaluator import Prediction
from services.contracts.lean import LeanOutcome
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.queue.jobs import PRIORITY_LIMIT

WAITING = st.lists(
    st.builds(
        Waiting,
        group=st.sampled_from([None, "a", "b"]),
        seconds=st.floats(0.001, 100),
        valid_probability=st.none() | st.floats(0, 1),
    ),
    max_size=40,
)


@given(WAITING, st.sampled_from(list(SchedulingPolicy)), st.integers(-100, 100))
def test_every_policy_keeps_each_candidate_once_and_inside_the_callers_band(
    waiting: list[Waiting], policy: SchedulingPolicy, base: int
) -> None:
    ranked = order(policy, waiting)
    assert sorted(ranked) == list(range(len(waiting)))
    for low, high in ((0, FIRST_STEPS), (FIRST_STEPS, STEPS)):
        found = steps(ranked, base, low, high)
        assert all(base * STEPS + low <= p < base * STEPS + high for p in found)
        assert all(found[first] >= found[second] for first, second in itertools.pairwise(ranked))


def test_bands_of_different_callers_do_not_touch_and_fit_into_the_queue() -> None:
    assert LABEL_PRIORITY == -PRIORITY_LIMIT
    assert LABEL_PRIORITY < -100 * STEPS
    assert 100 * STEPS + STEPS - 1 <= PRIORITY_LIMIT


def test_fifo_keeps_the_order_and_shortest_sorts_by_predicted_time() -> None:
    waiting = [Waiting("a", 3.0), Waiting("a", 1.0), Waiting("b", 2.0)]
    assert order(SchedulingPolicy.FIFO, waiting) == [0, 1, 2]
    assert order(SchedulingPolicy.SHORTEST, waiting) == [1, 2, 0]


def test_value_prefers_uncertain_candidates_of_groups_that_can_teach() -> None:
    certain, uncertain = Waiting("a", 1.0, 0.99), Waiting("a", 1.0, 0.6)
    assert order(SchedulingPolicy.VALUE, [certain, uncertain]) == [1, 0]
    hopeless = [Waiting("hopeless", 1.0, p) for p in (0.3, 0.0, 0.0, 0.0)]
    mixed = [Waiting("mixed", 1.0, p) for p in (0.3, 1.0, 1.0, 0.0)]
    assert order(SchedulingPolicy.VALUE, [*hopeless, *mixed])[0] == 4
    assert order(SchedulingPolicy.VALUE, [Waiting("a", 10.0, 0.5), Waiting("a", 1.0, 0.5)]) == [1, 0]


def test_members_that_are_decided_count_for_what_a_group_can_teach() -> None:
    lost, open_ = Waiting("lost", 1.0, 0.3), Waiting("open", 1.0, 0.3)
    settled = {"lost": (0.0, 7), "open": (4.0, 7)}
    assert order(SchedulingPolicy.VALUE, [lost, open_], settled) == [1, 0]


def test_an_order_queues_the_shortest_first_and_raises_only_what_predictions_make_worth_it() -> None:
    predictor = CheckTimePredictor()
    short, long = "theorem a : p := rfl", "theorem b : p := by\n" + "  simp\n" * 50
    for _ in range(20):
        predictor.observe(features(short), None, 0.1)
        predictor.observe(features(long), None, 30.0)
    batch = BatchOrder(SchedulingPolicy.VALUE, 2, predictor)
    for key, program in (("long", long), ("short", short), ("sure", short)):
        batch.add(key, program, group=None, problem=None)
    first = batch.first(["long", "short", "sure"])
    assert [key for key, _ in first] == ["short", "sure", "long"]
    raised = batch.raises({"long", "short", "sure"}, {"short": 0.5, "sure": 0.999, "long": 0.5})
    assert all(2 * STEPS <= priority < 3 * STEPS for priority in [*dict(first).values(), *raised.values()])
    assert raised["short"] > raised["sure"]
    assert batch.raises({"short"}, {"short": 0.999}) == {}, "never lowered, and not raised to what it has"


def test_fifo_computes_nothing_and_raises_nothing() -> None:
    batch = BatchOrder(SchedulingPolicy.FIFO, 3, CheckTimePredictor())
    batch.add("a", "theorem a : p := rfl", group=None, problem=None)
    assert batch.first(["b", "a"]) == [("b", 3 * STEPS), ("a", 3 * STEPS)]
    assert batch.raises({"a"}, {"a": 0.5}) == {}


def test_fifo_learns_for_other_batches_where_somebody_predicts() -> None:
    predictor = CheckTimePredictor()
    batch = BatchOrder(SchedulingPolicy.FIFO, 0, predictor)
    for number in range(20):
        batch.add(str(number), "theorem a : p := by decide", group=None, problem=None)
        batch.finished(str(number), LeanOutcome(status=LeanStatus.TIMEOUT, reason=Reason.LEAN_TIMEOUT), 60.0)
    assert predictor.predict(features("theorem a : p := by decide"), None) > 20
    silent = BatchOrder(SchedulingPolicy.FIFO, 0, None)
    silent.add("a", "theorem a : p := by decide", group=None, problem=None)
    silent.finished("a", LeanOutcome(status=LeanStatus.TIMEOUT, reason=Reason.LEAN_TIMEOUT), 60.0)


def test_stages_that_disagree_make_an_uncertain_candidate() -> None:
    def chance(gate: float | None, feedback: Verdict | None, verdict: Verdict) -> float | None:
        reasons = {
            Verdict.VALID: Reason.OK,
            Verdict.INVALID: Reason.FEEDBACK_ERROR,
            Verdict.UNKNOWN: Reason.NOT_DECIDED,
        }
        reason = reasons[verdict]
        found = Prediction(id="a", verdict=verdict, reason=reason, gate=gate, feedback=feedback)
        return valid_probability(found)

    assert chance(0.9, Verdict.VALID, Verdict.VALID) == 0.95
    assert chance(0.9, Verdict.INVALID, Verdict.INVALID) == 0.45
    assert chance(0.2, None, Verdict.INVALID) == 0.2
    assert chance(None, None, Verdict.UNKNOWN) is None


def test_the_predictor_learns_the_order_of_check_times() -> None:
    rng = np.random.default_rng(7)
    predictor = CheckTimePredictor()
    programs = [
        "theorem t : p := by\n" + "  simp\n" * int(rng.integers(1, 60)) + "  nlinarith\n" * int(rng.integers(0, 9))
        for _ in range(600)
    ]
    xs = [features(program) for program in programs]
    problems = [f"p{index % 30}" for index in range(600)]
    true = [
        np.exp(0.6 * x[1] + 0.9 * x[6] - 3 + 0.5 * (index % 30) / 30 + 0.3 * rng.normal()) for index, x in enumerate(xs)
    ]
    for x, problem, seconds in zip(xs[:400], problems, true, strict=False):
        predictor.observe(x, problem, float(seconds))
    predicted = [predictor.predict(x, problem) for x, problem in zip(xs[400:], problems[400:], strict=True)]
    ranks = np.corrcoef(np.argsort(np.argsort(predicted)), np.argsort(np.argsort(true[400:])))[0, 1]
    assert ranks > 0.8


def test_the_predictor_survives_constant_features_and_extreme_times() -> None:
    predictor = CheckTimePredictor(problems=10)
    x = features("")
    assert x.shape == (SIZE,)
    for index in range(20_000):
        predictor.observe(x, f"p{index}", 0.0 if index % 2 else 1e9)
    assert np.isfinite(predictor.predict(features("simp " * 10_000), "new"))
