"""The gateway's own scheduling policies as the ordering of a simulated batch."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from reward_gateway.scheduling.check_time import CheckTimePredictor, Vector
from reward_gateway.scheduling.order import BatchOrder
from reward_gateway.scheduling.policies import SchedulingPolicy
from reward_gateway.studies.cohort import Flags, Indices, Numbers

REARRANGE_S = 0.5
"""The gateway moves checks forward as predictions come, but not more often."""


class Foretold(CheckTimePredictor):
    """Predicted check times that are given, by the number of the check as its problem."""

    def __init__(self, seconds: Numbers) -> None:
        super().__init__()
        self._seconds = seconds

    def predict(self, x: Vector, problem: str | None) -> float:
        return float(self._seconds[int(problem or 0)])


class Scheduled:
    """`BatchOrder` over the checks 0 to n - 1 of one batch.

    Args:
        predicted_s: (n,) the check time that the gateway would predict.
        group: (n,) the prompt of each check, -1 for none.
        valid: (n,) Lean's verdict is `valid`; known of a check once it has ended.
        chance, known_at_s: (n,) the evaluator's probability of valid, and when it is known; inf or NaN for never.
        pause_s: least time between two rearrangements.
    """

    def __init__(
        self,
        policy: SchedulingPolicy,
        predicted_s: Numbers,
        group: Indices,
        valid: Flags,
        chance: Numbers,
        known_at_s: Numbers,
        pause_s: float = REARRANGE_S,
    ) -> None:
        self._order = BatchOrder(policy, 0, Foretold(predicted_s))
        self._group = [None if g < 0 else str(g) for g in group]
        self._valid = valid
        self._chance = chance
        self._known_at_s = np.where(np.isnan(chance), math.inf, known_at_s)
        self.pause_s = pause_s if policy is SchedulingPolicy.VALUE else math.inf
        for check, name in enumerate(self._group):
            self._order.add(str(check), "", group=name, problem=str(check))

    def first(self, checks: Sequence[int]) -> list[tuple[int, int]]:
        return [(int(key), priority) for key, priority in self._order.first([str(check) for check in checks])]

    def raises(self, at_s: float, waiting: set[int], ended: set[int]) -> Mapping[int, int]:
        known = {str(check): float(self._chance[check]) for check in np.flatnonzero(self._known_at_s <= at_s)}
        if not known:
            return {}
        settled: dict[str, tuple[float, int]] = defaultdict(lambda: (0.0, 0))
        for check in ended:
            if (group := self._group[check]) is not None:
                valid, count = settled[group]
                settled[group] = (valid + bool(self._valid[check]), count + 1)
        keys = [str(check) for check in sorted(waiting)]
        return {int(key): priority for key, priority in self._order.raises(keys, known, settled).items()}


def foretell(features: Numbers, problem: Indices, seconds: Numbers, batch: Indices) -> Numbers:
    """(n,) the check times that the gateway's own predictor would have said, having learned from earlier batches only.

    `seconds` inf teaches nothing. Before anything is learned every check is predicted alike.
    """
    predictor = CheckTimePredictor()
    predicted = np.ones(len(batch))
    names = [None if p < 0 else str(p) for p in problem]
    for number in np.unique(batch):
        members = np.flatnonzero(batch == number)
        for index in members:
            predicted[index] = predictor.predict(features[index], names[index])
        for index in members:
            if math.isfinite(seconds[index]):
                predictor.observe(features[index], names[index], float(seconds[index]))
    return predicted
