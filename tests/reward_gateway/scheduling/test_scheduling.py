from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reward_gateway.scheduling.check_time import SIZE, CheckTimePredictor, features
from reward_gateway.scheduling.policies import STEPS, SchedulingPolicy, Waiting, order, priorities

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
    assert sorted(order(policy, waiting)) == list(range(len(waiting)))
    assert all(base * STEPS <= p < (base + 1) * STEPS for p in priorities(policy, waiting, base))


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
