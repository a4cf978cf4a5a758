"""Lean share and wrong rewards under each scheduling policy: `python -m bench.scheduling [--json] [--cohort FILE]`.

Cohorts are replayed by `reward_gateway.studies`: a pool in virtual time, the gateway's own `BatchOrder`, equation 8 of
learning-lean-feedback by the gateway's own merge. One batch at a time; the evaluator's predictions arrive over its
whole time (gate scores in the first third of the window, feedback in the rest) and raise priorities, as in the server.

The synthetic cohort has the paper's size, check times and rates (1,024 candidates, 64 workers, a cutoff at 90 s). How
much a policy gains depends on how well check times are predicted, so each is shown at several rank correlations between
predicted and true time. At correlation 0 no gain is claimed.

`--cohort` replays recorded checks instead (`bench/record_cohort.py` makes the file): their times and verdicts are real,
times are predicted by the gateway's own predictor, which learned from another half of the file, and the pool and the
cutoff are scaled so that fifo reaches about the paper's share. The evaluator is synthetic there too.

`makespan` is when a batch without an evaluator and without a cutoff ends, against fifo.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import NormalDist, fmean

import numpy as np

from reward_gateway.scheduling.check_time import CheckTimePredictor
from reward_gateway.scheduling.policies import SchedulingPolicy
from reward_gateway.studies import paper
from reward_gateway.studies.cohort import Cohort, Numbers
from reward_gateway.studies.evaluators import synthetic_predictions
from reward_gateway.studies.ordering import REARRANGE_S
from reward_gateway.studies.recorded import read_cohort
from reward_gateway.studies.replay import Options, replay
from reward_gateway.studies.report import make_report
from reward_gateway.studies.synthetic import FIXED_POOL, synthetic_cohort

FIFO_SHARE = 0.43
NORMAL = NormalDist()


@dataclass(frozen=True)
class Case:
    """A cohort of one batch, the check times that are predicted for it, and the pool that checks it."""

    cohort: Cohort
    foretold_s: Numbers
    options: Options


@dataclass(frozen=True)
class Outcome:
    policy: str
    rank_correlation: float
    lean_share: float
    wrong_rewards: float
    share_ratio: float
    wrong_ratio: float
    makespan_ratio: float


def synthetic(rank_correlation: float, rng: np.random.Generator) -> Case:
    """A batch whose predicted times have the given Spearman correlation with the true ones (Gaussian copula)."""
    cohort = synthetic_cohort(FIXED_POOL, rng, batches=1)
    count = len(cohort)
    scores = np.array([NORMAL.inv_cdf((rank + 0.5) / count) for rank in ranks(cohort.seconds)])
    pearson = 2 * math.sin(math.pi * rank_correlation / 6)
    noisy = pearson * scores + math.sqrt(1 - pearson**2) * rng.normal(size=count)
    foretold_s = np.sort(np.minimum(cohort.seconds, paper.TIMEOUT_S))[ranks(noisy)]
    return Case(cohort, foretold_s, Options(workers=paper.WORKERS, cutoff_s=paper.EVALUATOR_S))


def recorded(path: Path, rng: np.random.Generator) -> Case:
    """Recorded checks: the predictor learns from one random half of the groups, the other half is the batch."""
    whole = read_cohort(path)
    if whole.features is None:
        raise SystemExit(f"{path} holds no features of its programs")
    groups = rng.permutation(np.unique(whole.group))
    learned_from = np.isin(whole.group, groups[: len(groups) // 2])
    predictor = CheckTimePredictor()
    for index in np.flatnonzero(learned_from):
        predictor.observe(whole.features[index], None, float(whole.seconds[index]))
    batch = rng.permutation(np.flatnonzero(~learned_from))
    cohort = whole.take(batch)
    foretold_s = np.array([predictor.predict(row, None) for row in whole.features[batch]])
    workers = max(2, len(cohort) * paper.WORKERS // paper.CANDIDATES)
    cutoff_s = float(cohort.seconds.sum()) / workers * FIFO_SHARE
    options = Options(
        workers=workers,
        timeout_s=float(cohort.seconds.max()) + 1,
        cutoff_s=cutoff_s,
        pause_s=REARRANGE_S * cutoff_s / paper.EVALUATOR_S,
    )
    return Case(cohort, foretold_s, options)


def study(cases: list[Case], rng: np.random.Generator) -> list[Outcome]:
    """Every policy on every case, in the mean."""
    results: dict[SchedulingPolicy, list[tuple[float, float, float]]] = {policy: [] for policy in SchedulingPolicy}
    for case in cases:
        said = synthetic_predictions(case.cohort, paper.CASCADE, case.options.cutoff_s, rng)
        for policy in SchedulingPolicy:
            options = replace(case.options, policy=policy)
            came = replay(case.cohort, options, said, foretold_s=case.foretold_s)
            report = make_report(case.cohort, options, said, came)
            alone = replay(case.cohort, replace(options, cutoff_s=math.inf), None, foretold_s=case.foretold_s)
            results[policy].append((report.lean_share, report.wrong_share or 0.0, float(alone.scoring_s.max())))
    correlation = fmean(rank_correlation(case.foretold_s, case.cohort.seconds) for case in cases)
    fifo = results[SchedulingPolicy.FIFO]
    base_share, base_wrong = (fmean(run[i] for run in fifo) for i in (0, 1))
    outcomes = []
    for policy, runs in results.items():
        share, wrong = (fmean(run[i] for run in runs) for i in (0, 1))
        later = fmean(one[2] / other[2] for one, other in zip(runs, fifo, strict=True))
        outcomes.append(
            Outcome(
                policy.value,
                round(correlation, 3),
                share,
                wrong,
                share / base_share,
                wrong / max(base_wrong, 1e-9),
                later,
            )
        )
    return outcomes


def ranks(values: Numbers) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.argsort(np.argsort(values, kind="stable"), kind="stable")


def rank_correlation(one: Numbers, other: Numbers) -> float:
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--cohort", type=Path, help="recorded checks instead of synthetic ones")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    seeds = range(arguments.seeds)
    outcomes: list[Outcome] = []
    if arguments.cohort:
        cases = [recorded(arguments.cohort, np.random.default_rng(seed)) for seed in seeds]
        outcomes = study(cases, np.random.default_rng(0))
    else:
        for correlation in (0.0, 0.3, 0.6):
            cases = [synthetic(correlation, np.random.default_rng(seed)) for seed in seeds]
            outcomes += study(cases, np.random.default_rng(0))
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
