"""Policies that decide which candidates Lean checks first. Pure: facts about a batch in, a score for each out.

A policy's scores order the candidates of one batch; `priorities` turns the order into queue priorities inside the band
of the caller's own priority, so that no policy lifts a batch above another caller's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

STEPS = 1_000
"""Queue priorities within one step of the caller's priority."""


class SchedulingPolicy(str, Enum):
    """`fifo`: the order of the batch. `shortest`: the shortest predicted check first. `value`: reward per second."""

    FIFO = "fifo"
    SHORTEST = "shortest"
    VALUE = "value"


_TRUST = 0.75
"""How far `value` follows the evaluator's own uncertainty: 1 is the expected change per second for a calibrated score,
0 is `shortest`. Scores drift and check times are only estimates; `bench/scheduling.py` compares."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is known about a candidate that waits for Lean.

    `valid_probability` is the evaluator's score, None until it has answered; `seconds` the predicted check time.
    """

    group: str | None
    seconds: float
    valid_probability: float | None = None


def order(policy: SchedulingPolicy, waiting: Sequence[Waiting]) -> list[int]:
    """Indices of `waiting`, the first to be checked first; ties keep the order of the batch."""
    score = _SCORES[policy](waiting)
    return sorted(range(len(waiting)), key=lambda index: -score[index])


def priorities(policy: SchedulingPolicy, waiting: Sequence[Waiting], base: int) -> list[int]:
    """Queue priority of each candidate: `base` is the caller's priority, the order decides within its step."""
    if policy is SchedulingPolicy.FIFO:
        return [base * STEPS] * len(waiting)
    result = [0] * len(waiting)
    for rank, index in enumerate(order(policy, waiting)):
        result[index] = base * STEPS + STEPS - 1 - rank * STEPS // max(len(waiting), 1)
    return result


def _fifo(waiting: Sequence[Waiting]) -> list[float]:
    return [0.0] * len(waiting)


def _shortest(waiting: Sequence[Waiting]) -> list[float]:
    return [-candidate.seconds for candidate in waiting]


def _value(waiting: Sequence[Waiting]) -> list[float]:
    """Expected change of the group's training signal per second of Lean.

    A prediction is wrong with probability min(p, 1 - p) for a calibrated p. A reward that turns out wrong matters as
    much as the group can teach: GRPO learns from the spread of rewards, at most when half of a group is right, and
    nothing from a group that is all right or all wrong. So the probability is weighted by the spread that the group
    would have, on average over whether this candidate turns out right or wrong.
    """
    members: dict[str | None, list[float]] = defaultdict(list)
    chances = [0.5 if w.valid_probability is None else w.valid_probability for w in waiting]
    for candidate, chance in zip(waiting, chances, strict=True):
        members[candidate.group].append(chance)
    totals = {group: (sum(group_chances), len(group_chances)) for group, group_chances in members.items()}
    scores = []
    for candidate, chance in zip(waiting, chances, strict=True):
        total, size = totals[candidate.group]
        if candidate.group is None or size == 1:
            spread = 0.25  # nothing is known about its group
        else:
            right, wrong = (total - chance + 1) / size, (total - chance) / size
            spread = chance * right * (1 - right) + (1 - chance) * wrong * (1 - wrong)
        scores.append((min(chance, 1 - chance) * spread) ** _TRUST / max(candidate.seconds, 1e-3))
    return scores


_SCORES: dict[SchedulingPolicy, Callable[[Sequence[Waiting]], list[float]]] = {
    SchedulingPolicy.FIFO: _fifo,
    SchedulingPolicy.SHORTEST: _shortest,
    SchedulingPolicy.VALUE: _value,
}
