"""Synthetic evaluators: predictions with a given true- and false-positive rate, and the time they take on GPUs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from reward_gateway.studies.cohort import NO, OPEN, YES, Cohort, Indices, Numbers, Predictions

_NORMAL = NormalDist()
GATE_PART = 1 / 3
"""Of the evaluator's time, the first part in which the gate rejects; the traces of what passed come in the rest."""


@dataclass(frozen=True, slots=True)
class Rates:
    """How often an evaluator accepts what Lean accepts, and what Lean rejects. Both strictly between 0 and 1."""

    true_positive: float
    false_positive: float

    def __post_init__(self) -> None:
        for name, rate in (("true-positive", self.true_positive), ("false-positive", self.false_positive)):
            if not 0 < rate < 1:
                raise ValueError(f"a {name} rate of {rate:g}; it lies strictly between 0 and 1")


@dataclass(frozen=True, slots=True)
class EvaluatorCost:
    """Seconds that an evaluator needs: `fixed_s` once a batch (load, swap, warm up), `candidate_s` of one GPU each."""

    fixed_s: float
    candidate_s: float

    def seconds(self, candidates: int, gpus: int) -> float:
        """From the batch to the last prediction, the candidates spread evenly over the GPUs."""
        return self.fixed_s + math.ceil(candidates / gpus) * self.candidate_s


def draw(verdict: Indices, rates: Rates, rng: np.random.Generator) -> tuple[Indices, Numbers]:
    """(prediction, calibrated probability of valid) of each program, from its true verdict.

    Normal evidence of unit variance whose threshold has exactly the two rates; the probability is Bayes' for the share
    of valid programs. A program whose truth is `OPEN` is drawn as valid or not in proportion to the others.
    """
    decided = verdict[verdict != OPEN]
    prior = min(max(float((decided == YES).mean()), 0.02), 0.98) if len(decided) else 0.5
    truth = np.where(verdict == OPEN, rng.random(len(verdict)) < prior, verdict == YES)
    to_valid, to_invalid = _NORMAL.inv_cdf(rates.true_positive), _NORMAL.inv_cdf(rates.false_positive)
    evidence = np.where(truth, to_valid, to_invalid) + rng.normal(size=len(verdict))
    log_odds = (to_valid - to_invalid) * evidence - (to_valid**2 - to_invalid**2) / 2 + math.log(prior / (1 - prior))
    return np.where(evidence > 0, YES, NO), 1 / (1 + np.exp(-log_odds))


def arrivals(accepted: Indices, done_s: Numbers | float, rng: np.random.Generator) -> Numbers:
    """When each prediction is known, `done_s` being the last: rejections in the gate's part, the rest after it."""
    early = GATE_PART * np.asarray(done_s)
    uniform = rng.random(len(accepted))
    return np.asarray(np.where(accepted == YES, early + uniform * (done_s - early), uniform * early))


def synthetic_predictions(
    cohort: Cohort, rates: Rates, done_s: float, rng: np.random.Generator, *, late_true_positive: float | None = None
) -> Predictions:
    """An evaluator for a cohort, ready with every batch after `done_s`.

    Programs that the precheck rejects get a prediction too, as they do in the paper's pipeline; equation 8 ignores it.
    `late_true_positive`: another true-positive rate for programs that take Lean longer than the recording's limit.
    """
    verdict, chance = draw(cohort.verdict, rates, rng)
    late = cohort.seconds >= cohort.limit_s
    if late_true_positive is not None and late.any():
        again, chances = draw(cohort.verdict[late], Rates(late_true_positive, rates.false_positive), rng)
        verdict[late], chance[late] = again, chances
    at_s = arrivals(verdict, done_s, rng)
    for batch in range(cohort.batches):
        members = cohort.members(batch)
        if len(members):
            at_s[members[np.argmax(at_s[members])]] = done_s
    return Predictions(verdict, at_s, chance)
