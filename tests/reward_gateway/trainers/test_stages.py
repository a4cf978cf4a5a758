"""Signals over tokens: nothing is lost on the way, and the whole equals `services/rewards` on the same steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_gateway.trainers.stages import (
    PLANNING,
    UNANNOTATED,
    RolloutSignals,
    StepSignals,
    encode,
    signals_of,
    token_advantages,
)
from services.contracts.trajectories import RolloutResult, StepRow
from services.rewards.group import RolloutSignals as GroupRollout
from services.rewards.group import StepSignals as GroupStep
from services.rewards.group import score_group

STAGES = 3


@st.composite
def rollouts(draw: st.DrawFn) -> RolloutSignals:
    alpha = draw(st.sampled_from([-1, 1, None]))
    steps, at = [], 0
    for _ in range(draw(st.integers(0, 5))):
        start = at + draw(st.integers(0, 2))
        at = start + draw(st.integers(1, 3))
        stage = draw(st.integers(PLANNING, STAGES - 1))
        beta = UNANNOTATED if stage == PLANNING else draw(st.sampled_from([-1, 1, UNANNOTATED]))
        gamma = 0 if stage == PLANNING else draw(st.sampled_from([-1, 0]))
        steps.append(StepSignals(start, at, stage, beta, gamma))
    return RolloutSignals(alpha, STAGES, tuple(steps))


@settings(deadline=None)
@given(st.lists(st.lists(rollouts(), min_size=1, max_size=5), min_size=1, max_size=3), st.randoms())
def test_token_advantages_equal_the_groups_own(groups: list[list[RolloutSignals]], random: object) -> None:
    rows = [(index, signals) for index, group in enumerate(groups) for signals in group]
    random.shuffle(rows)  # type: ignore[attr-defined]
    width = 30
    codes = np.array([encode(signals, width) for _, signals in rows])
    found = token_advantages(codes, [f"p{group}" for group, _ in rows])
    known_groups = {group for group, signals in rows if signals.alpha is not None}
    for index in range(len(groups)):
        members = [at for at, (group, _) in enumerate(rows) if group == index]
        steps_of = {at: rows[at][1].steps or (StepSignals(0, width),) for at in members}
        scored = score_group(
            [
                GroupRollout(
                    rows[at][1].alpha,
                    [
                        GroupStep(None if s.stage == PLANNING else s.stage, s.beta or None, s.gamma)
                        for s in steps_of[at]
                    ],
                )
                for at in members
            ],
            stages=STAGES,
        )
        for at, rewards in zip(members, scored.steps, strict=True):
            expected, returns = np.zeros(width), np.zeros(width)
            for step, row in zip(steps_of[at], rewards, strict=True):
                if row.reward is not None:
                    scale = len(rows) / len(known_groups) / (step.end - step.start)
                    expected[step.start : step.end] = row.advantage * row.weight * scale
                    returns[step.start : step.end] = row.reward
            np.testing.assert_allclose(found.advantages[at], expected, atol=1e-12)
            np.testing.assert_allclose(found.rewards[at], returns, atol=1e-12)


@given(rollouts())
def test_signals_survive_as_plain_values(signals: RolloutSignals) -> None:
    assert RolloutSignals.of(signals.plain()) == signals


def test_a_rollout_spread_over_two_rows_is_one_rollout() -> None:
    one = RolloutSignals(1, 1, (StepSignals(0, 2, 0, 1), StepSignals(2, 4, 0, -1)))
    other = RolloutSignals(1, 1, (StepSignals(0, 4, 0, 1),))
    whole = token_advantages(np.array([encode(one, 4), encode(other, 4)]), ["p", "p"])
    first = encode(RolloutSignals(1, 1, one.steps[:1]), 4)
    second = encode(RolloutSignals(1, 1, (StepSignals(0, 2, 0, -1),)), 4, first_step=1)
    parts = token_advantages(np.array([first, second, encode(other, 4)]), ["p"] * 3, ["a", "a", "b"])
    np.testing.assert_allclose(parts.advantages[0, :2] * 2 / 3, whole.advantages[0, :2])
    np.testing.assert_allclose(parts.advantages[1, :2] * 2 / 3, whole.advantages[0, 2:])


def test_steps_beyond_a_truncated_response_are_cut_off() -> None:
    signals = RolloutSignals(-1, 1, (StepSignals(0, 2, 0, 1), StepSignals(2, 9, 0, 1)))
    codes = encode(signals, 3)
    assert codes[0] == codes[1] != codes[2] != 0
    assert len(codes) == 3


def test_the_servers_rows_become_signals() -> None:
    rows = (
        StepRow(step=0, phase="plan", alpha=1, gamma=0),
        StepRow(step=1, phase="exec", general_stage="fix", beta=None, gamma=-1),
        StepRow(step=2, phase="exec", general_stage="look", beta=1, gamma=0),
    )
    result = RolloutResult(id="r", alpha=1, format="steps", steps=rows)
    found = signals_of(result, ["look", "fix"], [[0, 2], (3, 4), (5, 6)])
    assert found.steps == (StepSignals(0, 2), StepSignals(3, 4, 1, UNANNOTATED, -1), StepSignals(5, 6, 0, 1, 0))
    with pytest.raises(ValueError, match="2 token spans for 3 steps"):
        signals_of(result, ["look", "fix"], [(0, 1), (1, 2)])
