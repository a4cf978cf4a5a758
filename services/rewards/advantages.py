"""Workflow-stage-normalised advantages and loss weights (Lean4AgenticRL, equations 4 and 6), over flat arrays.

Rewards come in tenths, so means and deviations are compared as whole numbers: a stage whose rewards are all equal has a
deviation of exactly 0 and advantages of exactly 0, never a quotient of two rounding errors. Needs numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from services.rewards.algebra import MAXIMUM_TENTHS, MINIMUM_TENTHS
from services.rewards.arrays import Booleans, Integers, codes, require_columns, require_members, rollout_codes

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

PLANNING = -1
"""The stage, in arrays, of a step of the planning phase."""


@dataclass(frozen=True, slots=True)
class StepAdvantages:
    """One element a step, in the order of the input."""

    advantage: Floats
    """A: equation 6 for execution steps, the group's z-score of the rollout's outcome for planning steps."""
    weight: Floats
    """The factor of the step's term in equation 4: 1/(G m n_ij); for a planning step 1/(G n) with its rollout's n."""


def step_advantages(
    group: Integers,
    rollout: Integers,
    stage: Integers,
    reward_tenths: Integers,
    mask: Booleans | None = None,
    *,
    stages: int | Integers,
    alpha: Integers | None = None,
) -> StepAdvantages:
    """Advantage and loss weight of every step of a batch.

    All arrays are one-dimensional, one element a step, in any order. `group` and `rollout` are integer ids (a rollout
    is a pair of both); `stage` is the general stage from 0 to m - 1, or `PLANNING`; `reward_tenths` is r * 10
    (equations 1 to 3; alpha * 10 for planning steps). `mask` False keeps a step out of its stage's mean and std; it
    still gets the z-score of its own reward. `stages` is m, the number of general stages: one number, or one a step
    where groups follow different general workflows. `alpha`, the outcome of each step's rollout, is needed where there
    are planning steps.

    - Execution: z-score over the masked-in steps of one general stage across its group (equation 6), with the
      population standard deviation; 0 where that is 0 or nothing is masked in.
    - Planning: z-score of alpha over the group's rollouts, each counted once. The paper gives planning tokens the plain
      outcome and no stage, so the phase is a GRPO term of its own: 1/G * 1/n over the rollout's planning steps.
    - G counts the group's rollouts that occur in the arrays; a stage that a rollout never entered contributes 0.

    Steps of a rollout whose alpha is unknown have no reward: leave them out. Raises TypeError for columns that are not
    integers; ValueError for columns of different lengths, stages out of range, rewards that equations 1 to 3 cannot
    give, and planning steps without their alpha or rewarded with something else.
    """
    kept = np.ones(stage.shape, bool) if mask is None else mask
    size = require_columns(group=group, rollout=rollout, stage=stage, reward_tenths=reward_tenths, mask=kept)
    if size == 0:
        return StepAdvantages(np.zeros(0), np.zeros(0))
    m = np.broadcast_to(np.asarray(stages, np.int64), (size,))
    tenths = reward_tenths.astype(np.int64)
    _require_rewards(tenths)
    _require_stages(stage, m)

    groups, group_bound = codes(group)
    rollouts, rollout_bound = rollout_codes(group, rollout)
    column = stage.astype(np.int64) + 1  # planning is column 0
    columns = int(column.max()) + 1
    planning = column == 0
    home = np.full(rollout_bound, -1, np.int64)  # the group of each rollout
    home[rollouts] = groups
    present = home >= 0

    group_size = np.bincount(home[present], minlength=group_bound)
    cell = rollouts * columns + column
    cell_size = np.bincount(cell, minlength=rollout_bound * columns)
    weight = 1.0 / (group_size[groups] * np.where(planning, 1, m) * cell_size[cell])

    stage_pools = _Pools.of(groups * columns + column, tenths, kept.astype(bool) & ~planning, group_bound * columns)
    advantage = stage_pools.z_scores(groups * columns + column, tenths)
    if planning.any():
        outcome = _outcomes(rollouts, rollout_bound, alpha, tenths, planning)
        outcome_pools = _Pools.of(home[present], outcome[present], np.ones(int(present.sum()), bool), group_bound)
        advantage[planning] = outcome_pools.z_scores(groups[planning], tenths[planning])
    return StepAdvantages(advantage, weight)


@dataclass(frozen=True, slots=True)
class _Pools:
    """Exact moments of the pools that steps are normalised in."""

    count: Codes
    total: Codes
    inverse_spread: Floats
    """1 / sqrt(n * sum(r^2) - sum(r)^2), that is 1 / (n * std); 0 where std is 0."""

    @classmethod
    def of(cls, pool: Codes, tenths: Codes, counted: Booleans, bound: int) -> _Pools:
        members = pool[counted]
        values = tenths[counted].astype(np.float64)  # sums of small integers: exact in a float
        count = np.bincount(members, minlength=bound)
        total = np.bincount(members, weights=values, minlength=bound).astype(np.int64)
        squares = np.bincount(members, weights=values * values, minlength=bound).astype(np.int64)
        spread = count * squares - total * total
        inverse = np.zeros(bound)
        inverse[spread > 0] = 1.0 / np.sqrt(spread[spread > 0])
        return cls(count, total, inverse)

    def z_scores(self, pool: Codes, tenths: Codes) -> Floats:
        """(r - mean) / std of each value within its pool; the same in tenths as in whole units."""
        z: Floats = (self.count[pool] * tenths - self.total[pool]) * self.inverse_spread[pool]
        return z


def _outcomes(rollouts: Codes, bound: int, alpha: Integers | None, tenths: Codes, planning: Booleans) -> Codes:
    """10 * alpha of each rollout, checked against the rewards of its planning steps."""
    if alpha is None:
        raise ValueError("planning steps need alpha, the outcome of each step's rollout")
    require_columns(stage=planning, alpha=alpha)
    require_members("alpha", alpha, (-1, 1))
    outcome = np.zeros(bound, np.int64)
    outcome[rollouts] = 10 * alpha.astype(np.int64)
    if (outcome[rollouts] != 10 * alpha).any():
        at = int(np.argmax(outcome[rollouts] != 10 * alpha))
        raise ValueError(f"alpha[{at}] differs from that of another step of its rollout")
    wrong = planning & (outcome[rollouts] != tenths)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"reward_tenths[{at}] is {tenths[at]}, but a planning step is rewarded with alpha")
    return outcome


def _require_rewards(tenths: Integers) -> None:
    wrong = (tenths < MINIMUM_TENTHS) | (tenths > MAXIMUM_TENTHS)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"reward_tenths[{at}] is {tenths[at]}, outside {MINIMUM_TENTHS} to {MAXIMUM_TENTHS} tenths")


def _require_stages(stage: Integers, m: Codes) -> None:
    wrong = (stage < PLANNING) | (stage >= m)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"stage[{at}] is {stage[at]}, outside 0 to {int(m[at]) - 1} (and not PLANNING = {PLANNING})")
