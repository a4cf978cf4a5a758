"""The order of one batch's checks: a priority when they are queued, a higher one when predictions come."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from reward_gateway.scheduling.check_time import CheckTimePredictor, Vector, features
from reward_gateway.scheduling.policies import FIRST_STEPS, SchedulingPolicy, Settled, Waiting, order, steps
from services.contracts.evaluator import Prediction
from services.contracts.lean import LeanOutcome
from services.contracts.outcomes import LeanStatus, Verdict
from services.queue.jobs import STEPS


class BatchOrder:
    """Checks by their job key. `base` is the caller's priority; one predictor serves all batches of a gateway.

    Under `fifo` every check has the same priority; nothing is computed before a check ends, and then only where there
    is a predictor that should learn from it.
    """

    def __init__(self, policy: SchedulingPolicy, base: int, predictor: CheckTimePredictor | None) -> None:
        self.policy = policy
        self._base = base
        self._predictor = predictor
        self._features: dict[str, Vector] = {}
        self._programs: dict[str, str] = {}
        self._groups: dict[str, str | None] = {}
        self._problems: dict[str, str | None] = {}
        self._priorities: dict[str, int] = {}

    def add(self, key: str, program: str, *, group: str | None, problem: str | None) -> None:
        """A new check. `problem` is what its check time has in common with others of other batches."""
        if self._predictor is None:
            return
        if self.policy is SchedulingPolicy.FIFO:
            self._programs[key] = program
        else:
            self._features[key] = features(program)
        self._groups[key] = group
        self._problems[key] = problem

    def first(self, keys: Sequence[str]) -> list[tuple[str, int]]:
        """Keys that are about to be queued, in the order in which to queue them, with their priorities."""
        if self.policy is SchedulingPolicy.FIFO:
            return [(key, self._base * STEPS) for key in keys]
        ranked = order(self.policy, [self._waiting(key, None) for key in keys])
        found = steps(ranked, self._base, 0, FIRST_STEPS)
        self._priorities.update(zip(keys, found, strict=True))
        return [(keys[index], found[index]) for index in ranked]

    def raises(
        self, waiting: Collection[str], chances: Mapping[str, float], settled: Settled | None = None
    ) -> dict[str, int]:
        """Priorities that go up now that predictions are known: `chances` of being valid by key.

        A priority never goes down again, so each is raised only to what it is worth at present.
        """
        if self.policy is not SchedulingPolicy.VALUE:
            return {}
        keys = [key for key in waiting if key in self._features]
        ranked = order(self.policy, [self._waiting(key, chances.get(key)) for key in keys], settled)
        found = dict(zip(keys, steps(ranked, self._base, FIRST_STEPS, STEPS), strict=True)) if keys else {}
        changes = {key: priority for key, priority in found.items() if priority > self._priorities.get(key, priority)}
        self._priorities.update(changes)
        return changes

    def finished(self, key: str, outcome: LeanOutcome, limit_s: float) -> None:
        """Learn from a check that ended now; `limit_s` was its time limit."""
        timeout = outcome.status is LeanStatus.TIMEOUT
        seconds = limit_s if timeout else outcome.elapsed_s
        if self._predictor is None or not (timeout or (outcome.status is LeanStatus.OK and seconds > 0)):
            return
        known = features(self._programs[key]) if key in self._programs else self._features.get(key)
        if known is not None:
            self._predictor.observe(known, self._problems[key], seconds)

    def _waiting(self, key: str, chance: float | None) -> Waiting:
        known = self._features.get(key)
        seconds = 1.0
        if self._predictor is not None and known is not None:
            seconds = self._predictor.predict(known, self._problems[key])
        return Waiting(self._groups.get(key), seconds, chance)


def valid_probability(prediction: Prediction) -> float | None:
    """The probability of `valid` that a prediction, or news of a gate score, speaks for; None when it says nothing.

    Where both stages answered they count alike, so a program on which they disagree is an uncertain one.
    """
    if prediction.gate is None:
        return {Verdict.VALID: 0.9, Verdict.INVALID: 0.1, Verdict.UNKNOWN: None}[prediction.verdict]
    if prediction.feedback is None:
        return prediction.gate
    return (prediction.gate + (prediction.feedback is Verdict.VALID)) / 2
