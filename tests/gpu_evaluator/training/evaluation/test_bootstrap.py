from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_evaluator.training.evaluation import bootstrap
from gpu_evaluator.training.evaluation.bootstrap import ClusterBootstrap, interval


def _means(draw: ClusterBootstrap, values: np.ndarray) -> np.ndarray:
    sums = draw.sums(np.stack([values, np.ones_like(values)], axis=1))
    return draw.run(lambda weights: (weights @ sums)[:, 0] / (weights @ sums)[:, 1])


def test_a_resample_takes_whole_clusters_and_as_many_of_them() -> None:
    clusters = ["a", "a", "a", "b", "c", "c"]
    draw = ClusterBootstrap(clusters, 200)
    weights = draw.run(lambda drawn: drawn)
    assert weights.shape == (200, 3)
    assert (weights.sum(axis=1) == 3).all()
    assert draw.cluster.tolist() == [0, 0, 0, 1, 2, 2]


def test_it_is_the_plain_loop_over_problems() -> None:
    values = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    clusters = ["p", "p", "q", "r", "r"]
    random = np.random.default_rng(42)
    members = {0: [0, 1], 1: [2], 2: [3, 4]}
    wanted = []
    for picks in random.integers(3, size=(50, 3)):
        taken = [values[i] for pick in picks for i in members[int(pick)]]
        wanted.append(sum(taken) / len(taken))
    np.testing.assert_allclose(_means(ClusterBootstrap(clusters, 50, 42), values), wanted)


@given(st.integers(1, 7), st.integers(2, 40))
def test_memory_bounds_do_not_change_the_resamples(rows: int, programs: int) -> None:
    clusters = [number % 5 for number in range(programs)]
    whole = ClusterBootstrap(clusters, 23).run(lambda drawn: drawn)
    limit = bootstrap._CHUNK_BYTES
    try:
        bootstrap._CHUNK_BYTES = rows * 8 * programs
        assert np.array_equal(ClusterBootstrap(clusters, 23).run(lambda drawn: drawn), whole)
    finally:
        bootstrap._CHUNK_BYTES = limit


def test_dependent_programs_widen_the_interval() -> None:
    values = np.repeat(np.arange(50) % 2, 20).astype(float)
    alone = interval(_means(ClusterBootstrap(range(1000), 500), values))
    together = interval(_means(ClusterBootstrap([n // 20 for n in range(1000)], 500), values))
    assert alone is not None
    assert together is not None
    assert together[1] - together[0] > 3 * (alone[1] - alone[0])
    assert together[0] < 0.5 < together[1]


def test_the_interval_is_over_defined_values() -> None:
    assert interval(np.array([np.nan, np.nan])) is None
    assert interval(np.array([np.nan, 0.5])) == (0.5, 0.5)
    assert interval(np.linspace(0, 1, 1001)) == pytest.approx((0.025, 0.975))


@pytest.mark.parametrize(("clusters", "resamples"), [([], 10), (["a"], 0)])
def test_nothing_to_draw_from_is_refused(clusters: list[str], resamples: int) -> None:
    with pytest.raises(ValueError, match="needs programs"):
        ClusterBootstrap(clusters, resamples)
