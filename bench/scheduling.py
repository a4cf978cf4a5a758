"""Lean share and wrong rewards under each scheduling policy: `python -m bench.scheduling [--json]`.

A cohort is replayed in virtual time: one batch, a fixed pool of workers, each takes the first waiting candidate of the
policy's order; at the cutoff Lean's verdicts that are in count, the evaluator decides the rest (equation 8 of
learning-lean-feedback).

The synthetic cohort has the paper's size (1,024 candidates, 64 workers, a cutoff at 90 s, 60 s a check) and heavy-tailed times whose mean
gives about its Lean share under fifo (43%); its evaluator has the paper's true and false positive rates. How much a
policy gains depends on how well check times are predicted, so each is shown at several rank correlations between
predicted and true time. At correlation 0 no gain is claimed.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
from dataclasses import asdict, dataclass
from statistics import NormalDist, fmean

import numpy as np

from reward_gateway.scheduling.policies import SchedulingPolicy, Waiting, order

CANDIDATES, GROUP, WORKERS, CUTOFF_S, TIMEOUT_S = 1024, 8, 64, 90.0, 60.0
VALID, TRUE_POSITIVE, FALSE_POSITIVE = 0.43, 0.851, 0.116
MEAN_S, SIGMA = 13.0, 1.4
NORMAL = NormalDist()


@dataclass(frozen=True)
class Cohort:
    seconds: np.ndarray  # true check time, (n,)
    predicted: np.ndarray  # predicted check time, (n,)
    valid: np.ndarray  # Lean's verdict, (n,)
    accepted: np.ndarray  # the evaluator's verdict, (n,)
    chance: np.ndarray  # the evaluator's calibrated probability of valid, (n,)
    group: list[str]


@dataclass(frozen=True)
class Outcome:
    policy: str
    rank_correlation: float
    lean_share: float
    wrong_rewards: float
    share_ratio: float
    wrong_ratio: float


def synthetic(rank_correlation: float, rng: np.random.Generator) -> Cohort:
    """A cohort whose predicted times have the given Spearman correlation with the true ones (Gaussian copula)."""
    z = rng.normal(size=CANDIDATES)
    pearson = 2 * math.sin(math.pi * rank_correlation / 6)
    noisy = pearson * z + math.sqrt(1 - pearson**2) * rng.normal(size=CANDIDATES)
    scale = math.log(MEAN_S) - SIGMA**2 / 2 + _TRUNCATION
    groups = CANDIDATES // GROUP
    ease = rng.beta(0.6, 0.6 * (1 - VALID) / VALID, size=groups).repeat(GROUP)
    valid = rng.random(CANDIDATES) < ease
    # The evaluator's evidence is normal with a unit variance, and the threshold 0 has the paper's two rates.
    to_valid, to_invalid = NORMAL.inv_cdf(TRUE_POSITIVE), NORMAL.inv_cdf(FALSE_POSITIVE)
    evidence = np.where(valid, to_valid, to_invalid) + rng.normal(size=CANDIDATES)
    log_odds = (to_valid - to_invalid) * evidence - (to_valid**2 - to_invalid**2) / 2 + math.log(VALID / (1 - VALID))
    return Cohort(
        np.minimum(np.exp(scale + SIGMA * z), TIMEOUT_S),
        np.exp(scale + SIGMA * noisy),
        valid,
        evidence > 0,
        1 / (1 + np.exp(-log_odds)),
        [f"g{index // GROUP}" for index in range(CANDIDATES)],
    )


# The mean of the truncated lognormal is MEAN_S when its location is moved by this much.
_TRUNCATION = 0.36


def replay(cohort: Cohort, policy: SchedulingPolicy) -> tuple[float, float]:
    """(Lean share, share of wrong rewards) at the cutoff; a check cut by its timeout gives no verdict."""
    waiting = [
        Waiting(group, float(seconds), float(chance))
        for group, seconds, chance in zip(cohort.group, cohort.predicted, cohort.chance, strict=True)
    ]
    free = [0.0] * WORKERS
    decided = np.zeros(len(waiting), dtype=bool)
    for index in order(policy, waiting):
        start = heapq.heappop(free)
        end = start + float(cohort.seconds[index])
        heapq.heappush(free, end)
        decided[index] = end <= CUTOFF_S and cohort.seconds[index] < TIMEOUT_S
    wrong = ~decided & (cohort.accepted != cohort.valid)
    return float(decided.mean()), float(wrong.mean())


def study(correlations: list[float], seeds: int) -> list[Outcome]:
    outcomes = []
    for correlation in correlations:
        results: dict[SchedulingPolicy, list[tuple[float, float]]] = {policy: [] for policy in SchedulingPolicy}
        for seed in range(seeds):
            cohort = synthetic(correlation, np.random.default_rng(seed))
            for policy in SchedulingPolicy:
                results[policy].append(replay(cohort, policy))
        base_share, base_wrong = (fmean(r[i] for r in results[SchedulingPolicy.FIFO]) for i in (0, 1))
        for policy, runs in results.items():
            share, wrong = (fmean(run[i] for run in runs) for i in (0, 1))
            outcomes.append(Outcome(policy.value, correlation, share, wrong, share / base_share, wrong / base_wrong))
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    outcomes = study([0.0, 0.3, 0.6], arguments.seeds)
    if arguments.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes], indent=2))
        return
    print(f"{'policy':10} {'rank corr':>9} {'Lean share':>10} {'x fifo':>7} {'wrong':>7} {'x fifo':>7}")
    for o in outcomes:
        print(
            f"{o.policy:10} {o.rank_correlation:9.1f} {o.lean_share:10.3f} {o.share_ratio:7.2f} "
            f"{o.wrong_rewards:7.4f} {o.wrong_ratio:7.2f}"
        )


if __name__ == "__main__":
    main()
