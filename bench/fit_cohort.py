"""Fit `CheckTimes` of the synthetic cohort: `python -m bench.fit_cohort [--seconds 60]`.

A seeded random search for the largest deviation among the Lean share at 90 s and the batch time with a limit of 13 s
(64 workers with a core each), the two relations that the other parameters leave open. Prints the best parameters and
what they give; `reward_gateway/studies/synthetic.py` holds the result.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from reward_gateway.studies import paper
from reward_gateway.studies.replay import Options, replay
from reward_gateway.studies.report import make_report
from reward_gateway.studies.synthetic import FIXED_POOL, CheckTimes, synthetic_cohort

_BATCHES = 12
_SHARE, _SHORT_S = 0.43, 90.0


def measure(times: CheckTimes, seed: int = 0) -> tuple[float, float]:
    """The Lean share at 90 s, and the batch time with a limit of 13 s."""
    cohort = synthetic_cohort(times, np.random.default_rng(seed), batches=_BATCHES)
    cut = Options(workers=paper.WORKERS, cutoff_s=paper.EVALUATOR_S)
    short = Options(workers=paper.WORKERS, timeout_s=paper.SHORT_TIMEOUT_S)
    share, ends = (make_report(cohort, o, None, replay(cohort, o, None)) for o in (cut, short))
    return share.lean_share, ends.scoring_s


def loss(measured: tuple[float, float]) -> float:
    """The larger relative deviation."""
    return max(abs(measured[0] / _SHARE - 1), abs(measured[1] / _SHORT_S - 1))


def fit(start: CheckTimes, limit_s: float, seed: int = 0) -> tuple[float, CheckTimes]:
    """(loss, parameters): steps of shrinking size from the best point so far, until `limit_s` have passed."""
    rng, ends = np.random.default_rng(seed), time.monotonic() + limit_s
    best, scale = (loss(measure(start)), start), 0.3
    while time.monotonic() < ends:
        step = scale * rng.normal(size=4)
        now = best[1]
        odds = now.quick / (1 - now.quick) * math.exp(step[0])
        other = CheckTimes(
            odds / (1 + odds),
            now.quick_s * math.exp(step[1]),
            now.slow_s * math.exp(step[2]),
            now.spread * math.exp(step[3]),
        )
        tried = loss(measure(other))
        best, scale = ((tried, other), scale) if tried < best[0] else (best, max(0.02, 0.98 * scale))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    off, times = fit(FIXED_POOL, parser.parse_args().seconds)
    share, short_s = measure(times)
    print(f"{times}\nlargest deviation {off:.4f}: Lean share {share:.4f}, 13 s limit {short_s:.1f} s")


if __name__ == "__main__":
    main()
