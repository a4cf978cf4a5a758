"""Policies that decide which candidates Lean checks first. Pure: facts about a batch in, an order out.

`steps` turns an order into queue priorities inside the band of the caller's own priority, which is one of the queue's
bands: no policy lifts a batch above another caller's. The queue bounds priorities, so a band has few steps; inside a
step jobs run in the order in which they were queued.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from services.queue.jobs import STEPS

FIRST_STEPS = 3
"""Of these, the lowest are for what is known when a batch comes in; the others for what predictions add."""

LABEL_PRIORITY = -1_000
"""Below every caller's: checks that only label predictions."""


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


Settled = Mapping[str, tuple[float, int]]
"""Of each group, members that do not wait any more: the sum of their probabilities of being valid, and their number."""


def order(policy: SchedulingPolicy, waiting: Sequence[Waiting], settled: Settled | None = None) -> list[int]:
    """Indices of `waiting`, the first to be checked first; ties keep the order of the batch."""
    score = _SCORES[policy](waiting, settled or {})
    return sorted(range(len(waiting)), key=lambda index: -score[index])


def steps(ranked: Sequence[int], base: int, low: int, high: int) -> list[int]:
    """Queue priority of each candidate, for `ranked` as `order` gives it.

    `base` is the caller's priority. The steps of its band from `high` - 1 down to `low` take a growing part of the
    ranks, each twice as many as the one above it, because what runs next matters most.
    """
    result = [0] * len(ranked)
    parts = 2 ** (high - low) - 1
    for rank, index in enumerate(ranked):
        below = (1 + rank * parts // len(ranked)).bit_length() - 1
        result[index] = base * STEPS + high - 1 - below
    return result


def _fifo(waiting: Sequence[Waiting], settled: Settled) -> list[float]:
    return [0.0] * len(waiting)


def _shortest(waiting: Sequence[Waiting], settled: Settled) -> list[float]:
    return [-candidate.seconds for candidate in waiting]


def _value(waiting: Sequence[Waiting], settled: Settled) -> list[float]:
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
    totals = {}
    for group, group_chances in members.items():
        known, count = settled.get(group, (0.0, 0)) if group is not None else (0.0, 0)
        totals[group] = (sum(group_chances) + known, len(group_chances) + count)
    scores = []
    for candidate, chance in zip(waiting, chances, strict=True):
        total, size = totals[candidate.group]
        if candidate.group is None or size == 1:
            spread = 0.25  # nothing is known about its group
        else:
            right, wrong = (total - chance + 1) / size, (total - chance) / size
            spread = chance * right * (1 - right) + (1 - chance) * wrong * (1 - wrong)
        scores.append((min(chance, 1 - chance) * max(spread, 0.0)) ** _TRUST / max(candidate.seconds, 1e-3))
    return scores


_SCORES: dict[SchedulingPolicy, Callable[[Sequence[Waiting], Settled], list[float]]] = {
    SchedulingPolicy.FIFO: _fifo,
    SchedulingPolicy.SHORTEST: _shortest,
    SchedulingPolicy.VALUE: _value,
}
