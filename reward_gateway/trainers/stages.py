"""Equations 1 to 6 on the trainer's side, over tokens (Lean4AgenticRL, Section 2). Needs numpy.

A server that is asked about one rollout knows alpha, beta and gamma of its steps, never r: r depends on the pass rate
of the whole group. So each rollout's signals travel through the trainer as one whole number a token, next to its
response, until somebody holds the whole batch and calls `token_advantages`.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.contracts.trajectories import Phase, RolloutResult
from services.rewards.advantages import PLANNING, step_advantages
from services.rewards.arrays import UNANNOTATED, codes, in_statistics, process_band, reward_tenths

_STAGES = 128  # more than the general stages that a workflow may have
_MAX_STEPS = 2**31


@dataclass(frozen=True)
class StepSignals:
    """One step: its tokens in the response (half open), general stage or `PLANNING`, beta or `UNANNOTATED`, gamma.

    An execution step without a stage stands in the planning term, as on the server; unlike a planning step, whose gamma
    is 0, it may be penalised.
    """

    start: int
    end: int
    stage: int = PLANNING
    beta: int = UNANNOTATED
    gamma: int = 0


@dataclass(frozen=True)
class RolloutSignals:
    """A rollout's outcome (-1, 1, or None when it is unknown), the number of general stages, and its steps."""

    alpha: int | None
    stages: int
    steps: tuple[StepSignals, ...] = ()

    def plain(self) -> dict[str, Any]:
        """As JSON, for trainers that carry plain values."""
        rows = [[s.start, s.end, s.stage, s.beta, s.gamma] for s in self.steps]
        return {"alpha": self.alpha, "stages": self.stages, "steps": rows}

    @classmethod
    def of(cls, plain: Mapping[str, Any] | None) -> RolloutSignals:
        if plain is None:
            return cls(None, 1)
        return cls(plain["alpha"], plain["stages"], tuple(StepSignals(*row) for row in plain["steps"]))


def signals_of(
    result: RolloutResult, general_workflow: Sequence[str], spans: Sequence[Sequence[int]]
) -> RolloutSignals:
    """The signals of a rollout as the server judged it; `spans[i]` are the tokens of step i in the response.

    Raises ValueError when there is not one span a step, and for spans that are negative, reversed or overlap.
    """
    index = {name: number for number, name in enumerate(general_workflow)}
    steps = tuple(
        StepSignals(
            start,
            end,
            PLANNING if row.general_stage is None else index[row.general_stage],
            UNANNOTATED if row.beta is None else row.beta,
            0 if row.phase is Phase.PLAN else row.gamma or 0,
        )
        for row, (start, end) in zip(result.steps, _checked(spans, len(result.steps)), strict=True)
    )
    return RolloutSignals(result.alpha, len(general_workflow), steps)


def _checked(spans: Sequence[Sequence[int]], steps: int) -> list[tuple[int, int]]:
    if len(spans) != steps:
        raise ValueError(f"{len(spans)} token spans for {steps} steps")
    pairs: list[tuple[int, int]] = []
    free = 0
    for number, span in enumerate(spans):
        try:
            start, end = map(operator.index, span)
        except (TypeError, ValueError):
            raise ValueError(f"span {number} is {span!r}, not the first token and the one behind the last") from None
        if start < 0 or end < start:
            raise ValueError(f"span {number} is [{start}, {end}], which holds no tokens of a response")
        if start < end and start < free:
            raise ValueError(f"span {number} is [{start}, {end}], but a step before it has the tokens up to {free}")
        free = max(free, end)
        pairs.append((start, end))
    return pairs


def encode(signals: RolloutSignals, length: int, first_step: int = 0) -> list[int]:
    """One code a token of a response of `length` tokens; 0 for tokens of no step, and for an unknown outcome.

    A rollout without steps is one step of planning, so that its outcome counts. `first_step` numbers the steps on where
    a rollout is spread over several responses. Raises ValueError for a step that ends beyond the response.
    """
    out = [0] * length
    if signals.alpha is None:
        return out
    for number, step in enumerate(signals.steps or (StepSignals(0, length),), first_step):
        if step.end > length:
            raise ValueError(
                f"step {number - first_step} has the tokens [{step.start}, {step.end}] of a response of {length}: "
                "where a response was cut, cut its spans too (an empty one for a step that lost all its tokens)"
            )
        code = number * _STAGES + signals.stages
        code = code * _STAGES + step.stage + 1
        code = ((code * 3 + step.beta + 1) * 2 + step.gamma + 1) * 2 + (signals.alpha > 0)
        for position in range(step.start, step.end):
            out[position] = code + 1
    return out


@dataclass(frozen=True)
class TokenAdvantages:
    """Both of the shape of the codes. `rewards`: r of each token's step (equations 1 to 3)."""

    advantages: npt.NDArray[np.float64]
    rewards: npt.NDArray[np.float64]


def token_advantages(
    token_codes: npt.NDArray[np.int64], groups: Sequence[Any], rollouts: Sequence[Any] | None = None
) -> TokenAdvantages:
    """Advantages of equation 6 with the weights of equation 4 folded in, for a loss that is the mean over rows of sums.

    `token_codes` (rows, tokens) from `encode`; `groups` and `rollouts` name each row's prompt and rollout (default:
    every row is a rollout of its own). With B rows in P groups a token of a step gets A * w * B / (P * tokens of the
    step), where w = 1/(G m n_ij): then the mean over rows of the sums over tokens is the mean over groups of equation
    4, which holds for the policy term because clipping is positively homogeneous. A step without tokens is not there.
    """
    rows, places = np.nonzero(token_codes)
    out = TokenAdvantages(np.zeros(token_codes.shape), np.zeros(token_codes.shape))
    if rows.size == 0:
        return out
    group = _numbers(groups)
    rollout = np.arange(len(group)) if rollouts is None else _numbers(rollouts)
    values = token_codes[rows, places] - 1
    # Steps are numbered within a rollout: a step is a pair of both numbers.
    step_of, _ = codes(rollout[rows] * _MAX_STEPS + values // (_STAGES * _STAGES * 12))
    _, first, step, tokens = np.unique(step_of, return_index=True, return_inverse=True, return_counts=True)
    home = rows[first]
    fields = _decode(values[first])
    in_band = process_band(group[home], rollout[home], fields.alpha)
    planning = fields.stage == PLANNING
    found = step_advantages(
        group[home],
        rollout[home],
        fields.stage,
        reward_tenths(fields.alpha, fields.beta, fields.gamma, in_band, planning),
        in_statistics(fields.beta, in_band),
        stages=fields.stages,
        alpha=fields.alpha,
    )
    # A penalty takes an execution step without a stage from a passed rollout's reward, 1, to a failed one's, -1, whose
    # z-scores among outcomes of both kinds are a and -1/a (and 0 where all are alike).
    advantage = found.advantage
    unstaged = planning & (fields.gamma == -1)
    tenths = reward_tenths(fields.alpha, fields.beta, fields.gamma, in_band, planning & ~unstaged)
    fallen = unstaged & in_band & (advantage > 0)
    advantage[fallen] = -1 / advantage[fallen]
    scale = token_codes.shape[0] / len(np.unique(group[home]))
    per_step = advantage * found.weight * scale / tokens
    step = step.reshape(-1)
    out.advantages[rows, places] = per_step[step]
    out.rewards[rows, places] = tenths[step] / 10
    return out


@dataclass(frozen=True)
class _Fields:
    alpha: npt.NDArray[np.int64]
    beta: npt.NDArray[np.int64]
    gamma: npt.NDArray[np.int64]
    stage: npt.NDArray[np.int64]
    stages: npt.NDArray[np.int64]


def _decode(values: npt.NDArray[np.int64]) -> _Fields:
    values, passed = np.divmod(values, 2)
    values, gamma = np.divmod(values, 2)
    values, beta = np.divmod(values, 3)
    values, stage = np.divmod(values, _STAGES)
    return _Fields(2 * passed - 1, beta - 1, gamma - 1, stage - 1, values % _STAGES)


def _numbers(names: Sequence[Any]) -> npt.NDArray[np.int64]:
    """Any hashable names as whole numbers, equal ones alike."""
    seen: dict[Any, int] = {}
    return np.array([seen.setdefault(name, len(seen)) for name in names], np.int64)
