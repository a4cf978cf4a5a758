"""Cluster bootstrap: whole problems are drawn with replacement (learning-lean-feedback, Appendix G).

Programs that share a problem are no independent sample, so a resample takes all of a problem's programs or none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

import numpy as np

from gpu_evaluator.training.evaluation.confusion import Numbers

RESAMPLES = 5_000
SEED = 42
_TAIL = 2.5
_CHUNK_BYTES = 32 * 2**20

Statistic = Callable[[Numbers], Numbers]
"""From weights (c, clusters), how often each cluster is in each of c resamples, to values (c, ...)."""


class ClusterBootstrap:
    """The same resamples for every statistic, so that differences between statistics are paired.

    Args:
        clusters: (n,) what each program belongs to.
        resamples: how many are drawn.
        seed: of numpy's default generator.

    Attributes:
        cluster: (n,) the number of each program's cluster.
        clusters: how many there are.

    Raises:
        ValueError: there are no programs or no resamples.
    """

    def __init__(self, clusters: Sequence[Hashable], resamples: int = RESAMPLES, seed: int = SEED) -> None:
        if not clusters or resamples < 1:
            raise ValueError("a bootstrap needs programs, and at least one resample")
        names: dict[Hashable, int] = {}
        self.cluster = np.array([names.setdefault(name, len(names)) for name in clusters], dtype=np.int64)
        self.clusters = len(names)
        self._resamples, self._seed = resamples, seed

    def run(self, statistic: Statistic) -> Numbers:
        """(resamples, ...) the statistic of every resample."""
        return np.concatenate([statistic(drawn) for drawn in self._draws()])

    def sums(self, values: Numbers) -> Numbers:
        """(clusters, k) of values (n, k): what each cluster adds to a resample whenever it is drawn."""
        columns = [np.bincount(self.cluster, weights=column, minlength=self.clusters) for column in values.T]
        return np.stack(columns, axis=1)

    def _draws(self) -> Iterator[Numbers]:
        """(c, clusters) how often each cluster is in each resample; chunks, so that memory stays bounded."""
        random = np.random.default_rng(self._seed)
        chunk = max(1, _CHUNK_BYTES // (8 * len(self.cluster)))
        for start in range(0, self._resamples, chunk):
            rows = min(chunk, self._resamples - start)
            picks = random.integers(self.clusters, size=(rows, self.clusters))
            places = picks + self.clusters * np.arange(rows)[:, None]
            times = np.bincount(places.ravel(), minlength=rows * self.clusters)
            yield times.reshape(rows, self.clusters).astype(float)


def interval(values: Numbers) -> tuple[float, float] | None:
    """The 2.5th and 97.5th percentiles of the resamples in which the statistic is defined; None without any."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return None
    low, high = np.percentile(defined, [_TAIL, 100 - _TAIL])
    return float(low), float(high)
