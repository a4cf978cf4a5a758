"""Lean share and wrong rewards under each scheduling policy: `python -m bench.scheduling [--json] [--cohort FILE]`.

A cohort is replayed in virtual time through the gateway's own `BatchOrder`: one batch, a fixed pool of workers that
each take the first waiting check of the highest priority, and predictions that arrive over the time of the evaluator
(gate scores in the first third of the window, feedback in the rest) and raise priorities, as in the server. At the
cutoff Lean's verdicts that are in count, the cascade decides the rest (equation 8 of learning-lean-feedback).

The synthetic cohort has the paper's size (1,024 candidates, 64 workers, a cutoff at 90 s, 60 s a check) and
heavy-tailed times whose mean gives about its Lean share under fifo (43%); its evaluator has the paper's true and false
positive rates. How much a policy gains depends on how well check times are predicted, so each is shown at several rank
correlations between predicted and true time. At correlation 0 no gain is claimed.

`--cohort` replays recorded checks instead (`bench/record_cohort.py` makes the file): their times and verdicts are real,
times are predicted by the gateway's own predictor, which learned from another half of the file, and the pool and the
cutoff are scaled so that fifo reaches the paper's share. The evaluator is synthetic there too.

`makespan` is when a batch without an evaluator and without a cutoff ends, against fifo.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist, fmean

import numpy as np
import numpy.typing as npt

from reward_gateway.scheduling.check_time import CheckTimePredictor, Vector, features
from reward_gateway.scheduling.order import BatchOrder
from reward_gateway.scheduling.policies import SchedulingPolicy

CANDIDATES, GROUP, WORKERS, CUTOFF_S, TIMEOUT_S = 1024, 8, 64, 90.0, 60.0
VALID, TRUE_POSITIVE, FALSE_POSITIVE, FIFO_SHARE = 0.43, 0.851, 0.116, 0.43
MEAN_S, SIGMA = 13.0, 1.4
REARRANGE_PART = 0.5 / 90  # of the window: the server's half second
GATE_PART = 1 / 3
NORMAL = NormalDist()

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Cohort:
    """`chance`: the evaluator's calibrated probability of valid; all arrays are (n,), times in seconds."""

    seconds: Numbers
    predicted: Numbers
    valid: Flags
    accepted: Flags
    chance: Numbers
    group: list[str]
    workers: int = WORKERS
    cutoff_s: float = CUTOFF_S
    timeout_s: float = TIMEOUT_S


@dataclass(frozen=True)
class Outcome:
    policy: str
    rank_correlation: float
    lean_share: float
    wrong_rewards: float
    share_ratio: float
    wrong_ratio: float
    makespan_ratio: float


class Given(CheckTimePredictor):
    """Predictions of the cohort, by its index as the problem."""

    def __init__(self, predicted: Numbers) -> None:
        super().__init__()
        self._given = predicted

    def predict(self, x: Vector, problem: str | None) -> float:
        return float(self._given[int(problem or 0)])


def evaluator(valid: Flags, rng: np.random.Generator) -> tuple[Flags, Numbers]:
    """Accepted, and the calibrated probability: normal evidence whose threshold has the paper's two rates."""
    to_valid, to_invalid = NORMAL.inv_cdf(TRUE_POSITIVE), NORMAL.inv_cdf(FALSE_POSITIVE)
    evidence = np.where(valid, to_valid, to_invalid) + rng.normal(size=len(valid))
    prior = min(max(float(valid.mean()), 0.02), 0.98)
    log_odds = (to_valid - to_invalid) * evidence - (to_valid**2 - to_invalid**2) / 2 + math.log(prior / (1 - prior))
    return evidence > 0, 1 / (1 + np.exp(-log_odds))


def synthetic(rank_correlation: float, rng: np.random.Generator) -> Cohort:
    """A cohort whose predicted times have the given Spearman correlation with the true ones (Gaussian copula)."""
    z = rng.normal(size=CANDIDATES)
    pearson = 2 * math.sin(math.pi * rank_correlation / 6)
    noisy = pearson * z + math.sqrt(1 - pearson**2) * rng.normal(size=CANDIDATES)
    scale = math.log(MEAN_S) - SIGMA**2 / 2 + _TRUNCATION
    groups = CANDIDATES // GROUP
    ease = rng.beta(0.6, 0.6 * (1 - VALID) / VALID, size=groups).repeat(GROUP)
    valid = rng.random(CANDIDATES) < ease
    accepted, chance = evaluator(valid, rng)
    return Cohort(
        np.minimum(np.exp(scale + SIGMA * z), TIMEOUT_S),
        np.exp(scale + SIGMA * noisy),
        valid,
        accepted,
        chance,
        [f"g{index // GROUP}" for index in range(CANDIDATES)],
    )


# The mean of the truncated lognormal is MEAN_S when its location is moved by this much.
_TRUNCATION = 0.36


def recorded(path: Path, rng: np.random.Generator) -> Cohort:
    """Recorded checks: the predictor learns from one random half, the other half is the cohort."""
    rows = json.loads(path.read_text(encoding="utf-8"))["checks"]
    groups = sorted({row["group"] for row in rows})
    rng.shuffle(groups)
    learned_from = set(groups[: len(groups) // 2])
    predictor = CheckTimePredictor()
    for row in rows:
        if row["group"] in learned_from:
            predictor.observe(features(row["code"]), None, row["seconds"])
    checks = [row for row in rows if row["group"] not in learned_from]
    rng.shuffle(checks)
    seconds = np.array([row["seconds"] for row in checks])
    valid = np.array([row["verdict"] == "valid" for row in checks])
    accepted, chance = evaluator(valid, rng)
    predicted = np.array([predictor.predict(features(row["code"]), None) for row in checks])
    workers = max(2, len(checks) * WORKERS // CANDIDATES)
    timeout_s = float(max(seconds)) + 1
    cutoff_s = float(seconds.sum()) / workers * FIFO_SHARE
    group = [row["group"] for row in checks]
    return Cohort(seconds, predicted, valid, accepted, chance, group, workers, cutoff_s, timeout_s)


def arrivals(cohort: Cohort, rng: np.random.Generator) -> Numbers:
    """When each candidate's probability is known: rejections of the gate early, the rest with its trace."""
    early = cohort.cutoff_s * GATE_PART
    gate = rng.random(len(cohort.seconds)) * early
    trace = early + rng.random(len(cohort.seconds)) * (cohort.cutoff_s - early)
    return np.where(cohort.accepted, trace, gate)


def replay(cohort: Cohort, policy: SchedulingPolicy, known_at: Numbers, end_s: float) -> tuple[float, float, float]:
    """(Lean share, share of wrong rewards, end of the last check) with a cutoff at `end_s`.

    A check cut by its timeout gives no verdict.
    """
    order = BatchOrder(policy, 0, Given(cohort.predicted))
    keys = [str(index) for index in range(len(cohort.seconds))]
    for key in keys:
        order.add(key, key, group=cohort.group[int(key)], problem=key)
    sequence = {key: place for place, (key, _) in enumerate(order.first(keys))}
    line = [(-priority, sequence[key], key) for key, priority in order.first(keys)]
    heapq.heapify(line)
    free = [0.0] * cohort.workers
    decided = np.zeros(len(keys), dtype=bool)
    waiting, last, rearranged = set(keys), 0.0, -math.inf
    while line:
        start = heapq.heappop(free)
        if start >= end_s:
            break
        if policy is SchedulingPolicy.VALUE and start - rearranged >= REARRANGE_PART * cohort.cutoff_s:
            rearranged = start
            known = {key: float(cohort.chance[int(key)]) for key in keys if known_at[int(key)] <= start}
            settled: dict[str, tuple[float, int]] = {}
            for index in np.flatnonzero(decided):
                valid, count = settled.get(cohort.group[index], (0.0, 0))
                settled[cohort.group[index]] = (valid + bool(cohort.valid[index]), count + 1)
            for key, priority in order.raises(waiting, known, settled).items() if known else ():
                heapq.heappush(line, (-priority, sequence[key], key))
        key = heapq.heappop(line)[2]
        if key not in waiting:
            heapq.heappush(free, start)
            continue
        waiting.remove(key)
        index = int(key)
        end = start + float(cohort.seconds[index])
        heapq.heappush(free, end)
        last = max(last, end)
        decided[index] = end <= end_s and cohort.seconds[index] < cohort.timeout_s
    wrong = ~decided & (cohort.accepted != cohort.valid)
    return float(decided.mean()), float(wrong.mean()), last


def study(cohorts: list[Cohort], rng: np.random.Generator) -> list[Outcome]:
    """Every policy on every cohort, in the mean."""
    results: dict[SchedulingPolicy, list[tuple[float, float]]] = {policy: [] for policy in SchedulingPolicy}
    ends: dict[SchedulingPolicy, list[float]] = {policy: [] for policy in SchedulingPolicy}
    correlations = []
    for cohort in cohorts:
        known_at = arrivals(cohort, rng)
        never = np.full(len(known_at), math.inf)
        correlations.append(rank_correlation(cohort.predicted, cohort.seconds))
        for policy in SchedulingPolicy:
            share, wrong, _ = replay(cohort, policy, known_at, cohort.cutoff_s)
            results[policy].append((share, wrong))
            ends[policy].append(replay(cohort, policy, never, math.inf)[2])
    base_share, base_wrong = (fmean(r[i] for r in results[SchedulingPolicy.FIFO]) for i in (0, 1))
    outcomes = []
    for policy, runs in results.items():
        share, wrong = (fmean(run[i] for run in runs) for i in (0, 1))
        later = fmean(a / b for a, b in zip(ends[policy], ends[SchedulingPolicy.FIFO], strict=True))
        outcomes.append(
            Outcome(
                policy.value,
                round(fmean(correlations), 3),
                share,
                wrong,
                share / base_share,
                wrong / max(base_wrong, 1e-9),
                later,
            )
        )
    return outcomes


def rank_correlation(one: Numbers, other: Numbers) -> float:
    ranks = [np.argsort(np.argsort(values)).astype(float) for values in (one, other)]
    return float(np.corrcoef(*ranks)[0, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--cohort", type=Path, help="recorded checks instead of synthetic ones")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    seeds = range(arguments.seeds)
    outcomes: list[Outcome] = []
    if arguments.cohort:
        cohorts = [recorded(arguments.cohort, np.random.default_rng(seed)) for seed in seeds]
        outcomes = study(cohorts, np.random.default_rng(0))
    else:
        for correlation in (0.0, 0.3, 0.6):
            cohorts = [synthetic(correlation, np.random.default_rng(seed)) for seed in seeds]
            outcomes += study(cohorts, np.random.default_rng(0))
    if arguments.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes], indent=2))
        return
    columns = (
        f"{'policy':10} {'rank corr':>9} {'Lean share':>10} {'x fifo':>7} {'wrong':>7} {'x fifo':>7} {'makespan':>8}"
    )
    print(columns)
    for o in outcomes:
        print(
            f"{o.policy:10} {o.rank_correlation:9.2f} {o.lean_share:10.3f} {o.share_ratio:7.2f} "
            f"{o.wrong_rewards:7.4f} {o.wrong_ratio:7.2f} {o.makespan_ratio:8.2f}"
        )


if __name__ == "__main__":
    main()
