"""Signals over tokens: nothing is lost on the way, and the whole equals the server's answer about the same group."""

from __future__ import annotations

import json
from typing import Any

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
from reward_gateway.trajectories.group import StageBeta, read_group
from reward_gateway.trajectories.rows import answer_of
from services.contracts.trajectories import RolloutResult, StepRow, TrajectoryScoreResponse
from services.process.penalties import StepGamma
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


NAMES = ["look", "fix", "verify"]


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """A rollout as it is sent, and what the penalties of its steps are to be; without any label it is unsegmented."""
    labels = st.sampled_from(NAMES) if draw(st.booleans()) else st.none()
    phases = st.sampled_from(["plan", "exec", "exec"])
    steps = [{"phase": draw(phases), "stage": draw(labels)} for _ in range(draw(st.integers(0, 5)))]
    gammas = [0 if step["phase"] == "plan" else draw(st.sampled_from([-1, 0])) for step in steps]
    return {
        "alpha": draw(st.sampled_from([1, 1, 1, -1, None])),
        "trajectory": steps,
        "gammas": gammas,
        "betas": draw(st.dictionaries(st.integers(0, 2), st.sampled_from([-1, 1]))),
    }


def judged(rollouts: list[dict[str, Any]], want: list[str]) -> TrajectoryScoreResponse:
    """The server's own answer, but for the penalties and stage rewards, which are the records'."""
    body = {
        "group": "g",
        "general_workflow": NAMES,
        "want": want,
        "rollouts": [
            {"id": str(at), "alpha": one["alpha"], "format": "steps", "trajectory": one["trajectory"]}
            for at, one in enumerate(rollouts)
        ],
    }
    group = read_group(json.dumps(body))
    for work, one in zip(group.rollouts, rollouts, strict=True):
        work.gammas = [StepGamma(at, None, None, gamma, ()) for at, gamma in enumerate(one["gammas"])]
        visits = () if work.placement is None else work.placement.visits
        work.betas = {visit: StageBeta(one["betas"][visit[0]]) for visit in visits if visit[0] in one["betas"]}
    return answer_of(group, 0.0)


@settings(deadline=None)
@given(st.lists(records(), min_size=1, max_size=8))
def test_the_plugin_agrees_with_the_servers_answer_about_the_group(rollouts: list[dict[str, Any]]) -> None:
    expected = judged(rollouts, ["rewards", "advantages"])
    width = 12
    spans = [[[2 * at, 2 * at + 2] for at in range(len(one["trajectory"]))] for one in rollouts]
    alone = [judged([one], ["gamma", "segments", "beta"]).rollouts[0] for one in rollouts]
    coded = [encode(signals_of(row, NAMES, held), width) for row, held in zip(alone, spans, strict=True)]
    found = token_advantages(np.array(coded), ["p"] * len(rollouts))
    for at, result in enumerate(expected.rollouts):
        for step in result.steps:
            tokens = slice(2 * step.step, 2 * step.step + 2)
            share = (step.advantage or 0.0) * (step.weight or 0.0) * len(rollouts) / 2
            np.testing.assert_allclose(found.advantages[at, tokens], share, atol=1e-12)
            np.testing.assert_allclose(found.rewards[at, tokens], step.reward or 0.0, atol=1e-12)


def test_a_penalty_lowers_a_step_without_a_stage() -> None:
    passed = RolloutSignals(1, 1, (StepSignals(0, 1), StepSignals(1, 3, gamma=-1)))
    plain = [RolloutSignals(alpha, 1) for alpha in (1, 1, -1)]
    codes = np.array([encode(signals, 3) for signals in (passed, *plain)])
    found = token_advantages(codes, ["p"] * 4)
    assert found.rewards[0].tolist() == [1, -1, -1]
    np.testing.assert_allclose(found.advantages[0], [0.57735027 / 2, -1.7320508 / 4, -1.7320508 / 4])


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


def test_a_step_that_ends_beyond_its_response_is_named() -> None:
    signals = RolloutSignals(-1, 1, (StepSignals(0, 2, 0, 1), StepSignals(2, 9, 0, 1), StepSignals(9, 9, 0, 1)))
    assert len(set(encode(signals, 9))) == 2
    with pytest.raises(ValueError, match=r"step 1 has the tokens \[2, 9\] of a response of 3"):
        encode(signals, 3, first_step=4)


def test_the_servers_rows_become_signals() -> None:
    rows = (
        StepRow(step=0, phase="plan", alpha=1, gamma=0),
        StepRow(step=1, phase="exec", general_stage="fix", beta=None, gamma=-1),
        StepRow(step=2, phase="exec", general_stage="look", beta=1, gamma=0),
    )
    result = RolloutResult(id="r", alpha=1, format="steps", steps=rows)
    found = signals_of(result, ["look", "fix"], [[0, 2], (3, 4), (5, 6)])
    assert found.steps == (StepSignals(0, 2), StepSignals(3, 4, 1, UNANNOTATED, -1), StepSignals(5, 6, 0, 1, 0))


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(0, 1)], "1 token spans for 2 steps"),
        ([(0, 1), (3, 2)], r"span 1 is \[3, 2\]"),
        ([(-1, 1), (1, 2)], r"span 0 is \[-1, 1\]"),
        ([(0, 3), (2, 4)], r"span 1 is \[2, 4\], but a step before it has the tokens up to 3"),
        ([(0, 3), 4], "span 1 is 4, not"),
        ([(0, 3), (3, 4.5)], r"span 1 is \(3, 4.5\), not"),
    ],
)
def test_spans_that_are_none_are_named(spans: Any, message: str) -> None:
    rows = tuple(StepRow(step=step, phase="exec", alpha=1, gamma=0) for step in range(2))
    with pytest.raises(ValueError, match=message):
        signals_of(RolloutResult(id="r", alpha=1, format="steps", steps=rows), ["look"], spans)
