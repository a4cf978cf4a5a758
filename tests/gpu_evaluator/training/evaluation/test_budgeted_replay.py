from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_evaluator.training.evaluation.replay import first_valid_by, make_pools, rank, replay

pool = st.lists(st.tuples(st.booleans(), st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), min_size=1, max_size=6)


def _by_enumeration(valid: list[bool], key: list[tuple[object, ...]], budget: int) -> float:
    """Every order that the ranking allows, one after the other."""
    orders = [
        order
        for order in itertools.permutations(range(len(valid)))
        if all(key[a] >= key[b] for a, b in itertools.pairwise(order))
    ]
    return sum(any(valid[i] for i in order[:budget]) for order in orders) / len(orders)


@given(pool, st.integers(1, 8))
def test_coverage_is_the_mean_over_every_order_that_the_ranking_allows(
    rows: list[tuple[bool, float, bool]], budgets: int
) -> None:
    valid, scores, verdict = (list(column) for column in zip(*rows, strict=True))
    flags = np.array(valid)
    for ranking, key in (
        (rank(np.array(scores)), [(s,) for s in scores]),
        (rank(np.array(scores), np.array(verdict)), list(zip(verdict, scores, strict=True))),
        (np.zeros(len(valid)), [()] * len(valid)),
    ):
        got = first_valid_by(flags, ranking, budgets)
        assert got == pytest.approx([_by_enumeration(valid, key, budget) for budget in range(1, budgets + 1)])


@given(pool)
def test_coverage_grows_with_the_budget_to_certainty(rows: list[tuple[bool, float, bool]]) -> None:
    valid = np.array([row[0] for row in rows])
    found = first_valid_by(valid, rank(np.array([row[1] for row in rows])), len(rows))
    assert (np.diff(found) >= -1e-12).all()
    assert found[-1] == pytest.approx(float(valid.any()))


def test_random_order_is_the_hypergeometric_chance() -> None:
    valid = np.array([True] * 3 + [False] * 7)
    found = first_valid_by(valid, np.zeros(10), 9)
    assert found == pytest.approx([1 - math.comb(7, k) / math.comb(10, k) for k in range(1, 10)])


def test_calls_count_every_pool_and_coverage_only_those_with_a_valid_candidate() -> None:
    keys = ["a", "a", "a", "b", "c", "c"]
    valid = np.array([False, True, False, True, False, False])
    scores = np.array([0.9, 0.8, 0.1, 0.2, 0.5, 0.4])
    result = replay(valid, rank(scores), make_pools(keys), 3)
    assert (result.pools, result.pools_with_valid) == (3, 2)
    assert result.coverage == pytest.approx([0.5, 1.0, 1.0])
    assert result.calls == pytest.approx([3 / 6, 5 / 6, 1.0])


def test_the_papers_pools_spend_the_printed_share_of_calls() -> None:
    # 1,001 ProofNet pools of 27.3 candidates on average: one check in each is 3.7% of all calls.
    sizes = [27] * 701 + [28] * 300
    keys = [number for number, size in enumerate(sizes) for _ in range(size)]
    result = replay(np.zeros(len(keys), bool), np.zeros(len(keys)), make_pools(keys), 1)
    assert round(float(result.calls[0]), 3) == 0.037
    assert result.pools_with_valid == 0
    assert math.isnan(result.coverage[0])


def test_a_missing_score_is_refused() -> None:
    with pytest.raises(ValueError, match="without a score"):
        rank(np.array([0.1, np.nan]))
