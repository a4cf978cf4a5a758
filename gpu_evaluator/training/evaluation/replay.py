"""Budgeted compilation replay: how many pools yield a valid proof after so many Lean checks each.

learning-lean-feedback, Section 5.1 and Appendix G. A pool holds the attempts of one prover on one problem; its
candidates are checked in the order of a ranking. Candidates that the ranking leaves tied are in random order, and
coverage is the exact expectation over it: a ranking that ties everything is the random ordering itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from gpu_evaluator.training.evaluation.confusion import Flags, Numbers


@dataclass(frozen=True, slots=True)
class Replay:
    """Coverage by budget; both arrays are (budgets,), for 1, 2, ... checks in each pool.

    `coverage`: expected fraction of the pools with a valid candidate in which one is found; NaN where there is none.
    `calls`: fraction of all candidates, of all pools, that are checked.
    """

    pools: int
    pools_with_valid: int
    coverage: Numbers
    calls: Numbers


def make_pools(keys: Sequence[Hashable]) -> list[np.ndarray]:
    """Indices of the candidates of each pool, from the key (benchmark, prover, problem) of each."""
    members: dict[Hashable, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        members[key].append(index)
    return [np.array(indices) for indices in members.values()]


def rank(scores: Numbers, verdict: Flags | None = None) -> Numbers:
    """(n,) the ranking of candidates, larger first, equal values tied: by verdict where given, then by score."""
    if np.isnan(scores).any():
        raise ValueError("a candidate without a score cannot be ranked")
    _, place = np.unique(scores, return_inverse=True)
    return place.astype(float) if verdict is None else place + verdict * (place.max(initial=0) + 1.0)


def replay(valid: Flags, ranking: Numbers, pools: Sequence[np.ndarray], budgets: int) -> Replay:
    """Check 1 to `budgets` candidates of each pool, larger `ranking` first."""
    found = [first_valid_by(valid[pool], ranking[pool], budgets) for pool in pools if valid[pool].any()]
    sizes = np.array([len(pool) for pool in pools])
    calls = np.minimum(sizes[:, None], np.arange(1, budgets + 1)).sum(axis=0) / max(sizes.sum(), 1)
    coverage = np.mean(found, axis=0) if found else np.full(budgets, np.nan)
    return Replay(len(pools), len(found), coverage, calls)


def first_valid_by(valid: Flags, ranking: Numbers, budgets: int) -> Numbers:
    """(budgets,) the chance that one of the first 1, 2, ... candidates is valid, ties in random order.

    In a block of b tied candidates, v of them valid, none of the first r is valid with the chance
    C(b - v, r) / C(b, r) = (b - v)/b * (b - v - 1)/(b - 1) * ..., r factors.
    """
    found = np.ones(budgets)
    checked = 0
    for value in np.unique(ranking)[::-1]:
        block = valid[ranking == value]
        size, right = len(block), int(block.sum())
        left = np.arange(size, 0, -1)
        missed = np.cumprod(np.maximum(left - right, 0) / left)
        end = min(checked + size, budgets)
        found[checked:end] = 1 - missed[: end - checked]
        if right or end == budgets:
            break
        checked = end
    else:
        found[checked:] = 0.0
    return found
