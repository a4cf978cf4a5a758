"""One group of rollouts in, one row of reward, weight and advantage a step out (Lean4AgenticRL, equations 1 to 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.rewards.algebra import as_float, planning_tenths, step_tenths
from services.rewards.band import PassRate, pass_rate


@dataclass(frozen=True, slots=True)
class StepSignals:
    """What is known of one step before the group is looked at."""

    stage: int | None
    """Index of the general stage; None in the planning phase."""
    beta: int | None = None
    """-1 or 1; None when the stage is unannotated. Ignored in the planning phase."""
    gamma: int = 0
    """-1 or 0. Ignored in the planning phase."""


@dataclass(frozen=True, slots=True)
class RolloutSignals:
    alpha: int | None
    """-1 or 1; None when the outcome is unknown."""
    steps: Sequence[StepSignals]


@dataclass(frozen=True, slots=True)
class StepReward:
    reward: float | None
    """r; None when the rollout's alpha is unknown."""
    weight: float
    advantage: float
    unannotated: bool
    """In the band without a beta: rewarded by alpha and gamma alone, and left out of its stage's mean and std."""


@dataclass(frozen=True, slots=True)
class GroupRewards:
    pass_rate: PassRate
    steps: tuple[tuple[StepReward, ...], ...]
    """For each rollout, in order, its steps in order."""


def score_group(rollouts: Sequence[RolloutSignals], *, stages: int) -> GroupRewards:
    """Rewards, loss weights and advantages of one group; `stages` is m, the number of general stages.

    A rollout whose alpha is unknown stays out of everything, G included: its steps have no reward, weight 0 and
    advantage 0. Raises ValueError when a value is outside its domain.
    """
    import numpy as np

    from services.rewards.advantages import PLANNING, step_advantages

    rate = pass_rate(rollout.alpha for rollout in rollouts)
    in_band = rate.in_process_band
    owner: list[int] = []
    stage: list[int] = []
    tenths: list[int] = []
    counted: list[bool] = []
    for index, rollout in enumerate(rollouts):
        if rollout.alpha is None:
            continue
        # A rollout without steps contributes 0 but counts in G and in the mean of alpha: a planning row stands for it.
        for step in rollout.steps or (StepSignals(stage=None),):
            owner.append(index)
            if step.stage is None:
                stage.append(PLANNING)
                tenths.append(planning_tenths(rollout.alpha))
                counted.append(True)
            elif 0 <= step.stage < stages:
                stage.append(step.stage)
                tenths.append(step_tenths(rollout.alpha, step.beta, step.gamma, in_band=in_band))
                counted.append(not (in_band and step.beta is None))
            else:
                raise ValueError(f"general stage {step.stage} is outside 0 to {stages - 1}")
    signals = step_advantages(
        np.zeros(len(owner), np.int64),
        np.array(owner, np.int64),
        np.array(stage, np.int64),
        np.array(tenths, np.int64),
        np.array(counted, bool),
        stages=stages,
        alpha=np.array([rollouts[index].alpha for index in owner], np.int64),
    )
    rows: list[list[StepReward]] = [[] for _ in rollouts]
    for index, reward, weight, advantage, kept in zip(
        owner, tenths, signals.weight.tolist(), signals.advantage.tolist(), counted, strict=True
    ):
        if rollouts[index].steps:
            rows[index].append(StepReward(as_float(reward), weight, advantage, not kept))
    for index, rollout in enumerate(rollouts):
        if rollout.alpha is None:
            rows[index] = [_NO_REWARD for _ in rollout.steps]
    return GroupRewards(rate, tuple(tuple(row) for row in rows))


_NO_REWARD = StepReward(reward=None, weight=0.0, advantage=0.0, unannotated=False)
