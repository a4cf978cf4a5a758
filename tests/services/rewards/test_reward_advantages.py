"""Equation 6, the loss weights, arrays and tokens against the transcription of the formulas."""

from __future__ import annotations

import formulas
import numpy as np
import pytest
from formulas import PlainRollout, PlainStep
from hypothesis import given, settings
from hypothesis import strategies as st

from services.rewards.advantages import PLANNING, step_advantages
from services.rewards.arrays import UNANNOTATED, codes, in_statistics, process_band, reward_tenths
from services.rewards.group import RolloutSignals, StepSignals, score_group
from services.rewards.tokens import token_advantages, token_weights

STAGES = 4

steps = st.builds(
    PlainStep, st.sampled_from([None, 0, 1, 2, 3]), st.sampled_from([-1, 1, None]), st.sampled_from([-1, 0, 0])
)
rollouts = st.builds(PlainRollout, st.sampled_from([-1, 1, 1, 1, None]), st.lists(steps, max_size=6))
groups = st.lists(rollouts, min_size=1, max_size=6)


def signals(group: list[PlainRollout]) -> list[RolloutSignals]:
    return [RolloutSignals(r.alpha, [StepSignals(s.stage, s.beta, s.gamma) for s in r.steps]) for r in group]


@settings(max_examples=300, deadline=None)
@given(groups)
def test_a_group_equals_the_transcription(group: list[PlainRollout]) -> None:
    scored = score_group(signals(group), stages=STAGES)
    for actual_row, expected_row in zip(scored.steps, formulas.rows(group, STAGES), strict=True):
        for actual, (reward, weight, advantage, unannotated) in zip(actual_row, expected_row, strict=True):
            assert actual.reward == (None if reward is None else float(reward))
            assert actual.weight == pytest.approx(weight, rel=1e-14)
            assert actual.advantage == pytest.approx(advantage, rel=1e-12, abs=1e-14)
            assert actual.unannotated is unannotated


@settings(max_examples=150, deadline=None)
@given(st.lists(groups, min_size=1, max_size=4), st.sampled_from([1, 7_919, 10**12]), st.randoms(use_true_random=False))
def test_flat_arrays_in_any_order_equal_the_transcription(batch: list[list[PlainRollout]], spread: int, random) -> None:  # type: ignore[no-untyped-def]
    batch = [[r for r in group if r.alpha is not None and r.steps] for group in batch]
    rows = [
        (g * spread - 3, i * spread, step, rollout.alpha, expected)
        for g, group in enumerate(batch)
        for i, (rollout, answers) in enumerate(zip(group, formulas.rows(group, STAGES), strict=True))
        for step, expected in zip(rollout.steps, answers, strict=True)
    ]
    random.shuffle(rows)
    group_ids = np.array([row[0] for row in rows], np.int64)
    rollout_ids = np.array([row[1] for row in rows], np.int64)
    stage = np.array([PLANNING if row[2].stage is None else row[2].stage for row in rows], np.int8)
    beta = np.array([row[2].beta or UNANNOTATED for row in rows], np.int8)
    gamma = np.array([row[2].gamma for row in rows], np.int8)
    alpha = np.array([row[3] for row in rows], np.int8)

    in_band = process_band(group_ids, rollout_ids, alpha)
    tenths = reward_tenths(alpha, beta, gamma, in_band, stage == PLANNING)
    mask = in_statistics(beta, in_band)
    result = step_advantages(group_ids, rollout_ids, stage, tenths, mask, stages=STAGES, alpha=alpha)

    assert tenths.tolist() == [int(row[4][0] * 10) for row in rows]
    np.testing.assert_allclose(result.weight, [row[4][1] for row in rows], rtol=1e-14)
    np.testing.assert_allclose(result.advantage, [row[4][2] for row in rows], rtol=1e-12, atol=1e-14)


def test_equal_rewards_have_advantages_of_exactly_zero() -> None:
    # As floats the mean of three -1.2 is not -1.2, and a z-score of the residue would be of order one.
    zeros = np.zeros(3, np.int64)
    result = step_advantages(zeros, np.arange(3), zeros, np.full(3, -12), stages=1)
    assert result.advantage.tolist() == [0.0, 0.0, 0.0]


def test_weights_sum_to_the_share_of_visited_stages() -> None:
    # One rollout visits two of four stages, the other one of four: 1/2 * (2/4 + 1/4).
    rollout = np.array([0, 0, 0, 1, 1])
    stage = np.array([0, 0, 3, 2, 2])
    result = step_advantages(np.zeros(5, np.int64), rollout, stage, np.full(5, 10), stages=4)
    assert result.weight.tolist() == [1 / 16, 1 / 16, 1 / 8, 1 / 16, 1 / 16]
    assert result.weight.sum() == 0.375


def test_groups_may_follow_general_workflows_of_different_length() -> None:
    group = np.array([0, 1])
    result = step_advantages(
        group, np.zeros(2, np.int64), np.zeros(2, np.int64), np.full(2, 10), stages=np.array([2, 5])
    )
    assert result.weight.tolist() == [1 / 2, 1 / 5]


def test_a_rollout_without_steps_counts_in_the_group_and_the_planning_mean() -> None:
    plan = [StepSignals(stage=None)]
    scored = score_group([RolloutSignals(1, plan), RolloutSignals(-1, []), RolloutSignals(-1, plan)], stages=2)
    assert scored.steps[1] == ()
    assert scored.steps[0][0].weight == 1 / 3
    assert scored.steps[0][0].advantage == pytest.approx(2**0.5)


def test_unannotated_steps_are_normalised_by_the_annotated_ones() -> None:
    steps = [StepSignals(0, 1), StepSignals(0, -1), StepSignals(0, None), StepSignals(0, None, -1)]
    (row,) = score_group([RolloutSignals(1, steps)], stages=1).steps
    assert [step.reward for step in row] == [1.5, 0.5, 1.0, -1.0]
    assert [step.advantage for step in row] == [1.0, -1.0, 0.0, -4.0]
    assert [step.unannotated for step in row] == [False, False, True, True]


def test_no_steps_at_all() -> None:
    nothing = np.zeros(0, np.int64)
    result = step_advantages(nothing, nothing, nothing, nothing, stages=3)
    assert result.advantage.shape == result.weight.shape == (0,)
    assert score_group([], stages=3).steps == ()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"reward_tenths": np.array([1.5, 0.5])}, TypeError, "reward_tenths must hold integers"),
        ({"reward_tenths": np.array([15, 16])}, ValueError, r"reward_tenths\[1\] is 16"),
        ({"stage": np.array([0, 2])}, ValueError, r"stage\[1\] is 2, outside 0 to 1"),
        ({"stage": np.array([-2, 0])}, ValueError, r"stage\[0\] is -2"),
        ({"rollout": np.array([0])}, ValueError, "rollout has 1 elements where 2"),
        ({"group": np.array([[0, 0]])}, ValueError, "group must have one dimension"),
        ({"stage": np.array([-1, 0])}, ValueError, "planning steps need alpha"),
        (
            {"stage": np.array([-1, 0]), "alpha": np.array([1, 1])},
            ValueError,
            r"reward_tenths\[0\] is 15, but a planning",
        ),
        ({"stage": np.array([-1, -1]), "alpha": np.array([1, -1])}, ValueError, r"alpha\[0\] differs"),
    ],
)
def test_bad_columns_are_named(change: dict[str, np.ndarray], error: type[Exception], message: str) -> None:
    columns = {
        "group": np.zeros(2, np.int64),
        "rollout": np.zeros(2, np.int64),
        "stage": np.zeros(2, np.int64),
        "reward_tenths": np.array([15, 5]),
        **change,
    }
    with pytest.raises(error, match=message):
        step_advantages(**columns, stages=2)  # type: ignore[arg-type]


def test_arrays_refuse_values_outside_their_domain() -> None:
    one, no = np.array([1]), np.array([False])
    with pytest.raises(ValueError, match=r"gamma\[0\] is 1"):
        reward_tenths(one, one, one, no, no)
    with pytest.raises(ValueError, match=r"alpha\[\d\] differs"):
        process_band(np.zeros(2, np.int64), np.zeros(2, np.int64), np.array([-1, 1]))


@given(st.lists(st.integers(-128, 127), max_size=40))
def test_codes_keep_order_and_equality_of_narrow_ids(ids: list[int]) -> None:
    numbers, bound = codes(np.array(ids, np.int8))
    assert all(0 <= n < bound for n in numbers.tolist())
    order = dict(zip(ids, numbers.tolist(), strict=True))
    assert [order[value] for value in ids] == numbers.tolist()
    assert sorted(order, key=lambda value: order[value]) == sorted(order)


def test_tokens_of_a_step_share_its_advantage_and_split_its_weight() -> None:
    starts, ends = np.array([5, 1, 7]), np.array([7, 4, 7])
    advantage = token_advantages(np.array([0.5, -1.0, 9.0]), starts, ends, 9)
    assert advantage.tolist() == [0, -1, -1, -1, 0, 0.5, 0.5, 0, 0]
    weight = token_weights(np.array([0.5, 0.75, 1.0]), starts, ends, 9)
    assert weight.tolist() == [0, 0.25, 0.25, 0.25, 0, 0.25, 0.25, 0, 0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=12), st.integers(0, 5))
def test_token_expansion_equals_a_loop(gaps: list[tuple[int, int]], tail: int) -> None:
    position, spans = 0, []
    for gap, size in gaps:
        spans.append((position + gap, position + gap + size))
        position += gap + size
    values = np.arange(1.0, len(spans) + 1)
    expected = [0.0] * (position + tail)
    for value, (start, end) in zip(values, spans, strict=True):
        for token in range(start, end):
            expected[token] = float(value)
    starts = np.array([s for s, _ in spans], np.int64)
    ends = np.array([e for _, e in spans], np.int64)
    assert token_advantages(values, starts, ends, position + tail).tolist() == expected


@pytest.mark.parametrize(
    ("starts", "ends", "message"),
    [
        ([0, 2], [3, 4], "share token 2"),
        ([0], [6], "leaves the sequence"),
        ([-1], [2], "leaves"),
        ([3], [2], "ends before"),
    ],
)
def test_bad_spans_are_refused(starts: list[int], ends: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        token_advantages(np.ones(len(starts)), np.array(starts), np.array(ends), 5)
