"""Cohorts made up to have the statistics that learning-lean-feedback publishes of its replay cohort.

Check times below the paper's limit of 60 s are of two kinds, each lognormal: programs that Lean rejects or finishes at
once, and programs with real work in them. Above it they are a power law. Shares that the paper
counts (timeouts, those that a longer budget resolves, valid proofs among both, missing code) hold exactly in a cohort
of the paper's size, not only on average: candidates are ranked by a random score and cut at the counts.

The parameters of `CheckTimes` are fitted by `bench/fit_cohort.py` to the Lean share after 90 s and the batch time with
a limit of 13 s, in a pool of 64 workers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from reward_gateway.scheduling.check_time import SIZE
from reward_gateway.studies import paper
from reward_gateway.studies.cohort import NO, OPEN, YES, Cohort, Flags, Indices, Numbers
from services.contracts.outcomes import Reason

_NORMAL = NormalDist()
_TAIL = -math.log((paper.TIMEOUTS - paper.RESOLVED) / paper.TIMEOUTS) / math.log(paper.AUDIT_S / paper.TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class CheckTimes:
    """Check times below 60 s, seconds.

    `quick`: the part of them that are quick, with median `quick_s`. `slow_s`: the median of the others. `spread`: the
    deviation of the logarithm, of both. `alike`: the correlation of (normal scores of) times within a prompt.
    """

    quick: float
    quick_s: float
    slow_s: float
    spread: float
    alike: float = 0.0


FIXED_POOL = CheckTimes(quick=0.597, quick_s=0.578, slow_s=34.8, spread=0.623)


def synthetic_cohort(
    times: CheckTimes,
    rng: np.random.Generator,
    *,
    candidates: int = paper.CANDIDATES,
    batches: int = paper.BATCHES,
    group: int = paper.GROUP,
    foretold: float = 0.6,
) -> Cohort:
    """Batches of `candidates`, `group` rollouts a prompt.

    `foretold`: correlation of the logarithm of check times with the one feature that a predictor can learn from.
    """
    count = candidates * batches
    prompt = np.arange(count) // group
    coded = _exactly(rng.random(count), 1 - paper.NO_CODE / paper.ROLLOUTS)
    score = _alike(prompt, times.alike, rng)
    rank = _ranks(np.where(coded, score, -np.inf))
    part = np.clip((rank - (count - coded.sum()) + 0.5) / max(coded.sum(), 1), 1e-9, 1 - 1e-9)
    seconds = np.where(coded, _seconds(part, times), np.inf)
    late = coded & (seconds >= paper.TIMEOUT_S)
    resolved = seconds < paper.AUDIT_S
    seconds = np.where(resolved, seconds, np.inf)
    ease = _alike(prompt, 0.6, rng)
    verdict = np.full(count, OPEN)
    for members, share in (
        (coded & ~late, paper.VALID),
        (late & resolved, paper.RESOLVED_VALID / paper.RESOLVED),
    ):
        verdict[members] = np.where(_exactly(ease[members], share), YES, NO)
    return Cohort(
        name="synthetic",
        batch=np.arange(count) // candidates,
        check=np.arange(count),
        group=prompt,
        problem=np.full(count, -1),
        precheck=[None if has else Reason.NO_CODE for has in coded],
        asked=coded,
        seconds=seconds,
        verdict=verdict,
        limit_s=np.full(count, paper.TIMEOUT_S),
        dead_s=np.full(count, np.inf),
        known=coded,
        cached_s=np.full(count, np.inf),
        answered_s=np.full(count, np.inf),
        features=_features(score, foretold, rng),
        predictions=None,
        arrival_s=np.zeros(batches),
        engines=np.full(batches, paper.WORKERS),
        timeout_s=np.full(batches, paper.TIMEOUT_S),
        ended_s=np.full(batches, np.inf),
    )


def _seconds(part: Numbers, times: CheckTimes) -> Numbers:
    """Quantiles of the check time, (n,), for parts of all checks that are at least as fast."""
    late = paper.TIMEOUTS / (paper.ROLLOUTS - paper.NO_CODE)
    body = np.interp(np.clip(part / (1 - late), 0, 1), *_body(times))
    tail = paper.TIMEOUT_S * (late / (1 - part)) ** (1 / _TAIL)
    return np.where(part < 1 - late, body, tail)


def _body(times: CheckTimes) -> tuple[Numbers, Numbers]:
    """The distribution below 60 s as a table: parts at least as fast, and seconds."""
    seconds = np.geomspace(1e-3, paper.TIMEOUT_S, 2_000)

    def below(median: float) -> Numbers:
        return np.array([_NORMAL.cdf(math.log(s / median) / times.spread) for s in seconds])

    part = times.quick * below(times.quick_s) + (1 - times.quick) * below(times.slow_s)
    return part / part[-1], seconds


def _alike(prompt: Indices, correlation: float, rng: np.random.Generator) -> Numbers:
    """Standard normal scores with the given correlation between rollouts of a prompt."""
    shared = rng.normal(size=int(prompt[-1]) + 1 if len(prompt) else 0)[prompt]
    return math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * rng.normal(size=len(prompt))


def _ranks(score: Numbers) -> Indices:
    ranks = np.empty(len(score), dtype=np.int64)
    ranks[np.argsort(score, kind="stable")] = np.arange(len(score))
    return ranks


def _exactly(score: Numbers, share: float) -> Flags:
    """The given share of the candidates, those with the highest scores."""
    return _ranks(score) >= len(score) - round(share * len(score))


def _features(score: Numbers, foretold: float, rng: np.random.Generator) -> Numbers:
    """One informative column, scaled like the others' logarithms of counts; the rest is the same for everybody."""
    seen = foretold * score + math.sqrt(1 - foretold**2) * rng.normal(size=len(score))
    columns = np.zeros((len(score), SIZE))
    columns[:, 0] = 5 + seen
    return columns
