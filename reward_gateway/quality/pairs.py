"""Pairs of verdicts, the evaluator's and Lean's, counted over a sliding window of time.

Checks that Lean finished before a cutoff are no fair sample: fast checks finish first. So pairs of the audit sample,
which is drawn uniformly before anything is scheduled and checked to the end, are counted apart, and the guard looks at
those alone.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import NamedTuple

from reward_gateway.quality.wilson import wilson
from services.contracts.evaluator import Confusion, QualityWindow

ALL_PROBLEMS = "all"


class Pair(NamedTuple):
    """One candidate on which Lean and the evaluator both answered."""

    at_s: float
    model: str
    problems: str
    audited: bool
    predicted_valid: bool
    valid: bool


class _Key(NamedTuple):
    model: str
    problems: str
    audited_only: bool


class _Cell(NamedTuple):
    key: _Key
    predicted_valid: bool
    valid: bool


@dataclass
class PairWindow:
    """The pairs of the last `window_s` seconds; memory is bounded by `limit` pairs, the oldest leave first.

    Adding is O(1) amortised; reading is O(number of models and sources).
    """

    window_s: float
    limit: int = 200_000

    def __post_init__(self) -> None:
        self._pairs: deque[Pair] = deque()
        self._cells: Counter[_Cell] = Counter()

    def add(self, pair: Pair) -> None:
        self._pairs.append(pair)
        self._count(pair, 1)
        while len(self._pairs) > self.limit:
            self._count(self._pairs.popleft(), -1)

    def confusion(self, now_s: float, model: str, *, problems: str = ALL_PROBLEMS, audited_only: bool) -> Confusion:
        self._forget(now_s)
        key = _Key(model, problems, audited_only)
        return Confusion(
            true_positive=self._cells[_Cell(key, True, True)],
            false_positive=self._cells[_Cell(key, True, False)],
            true_negative=self._cells[_Cell(key, False, False)],
            false_negative=self._cells[_Cell(key, False, True)],
        )

    def windows(self, now_s: float) -> tuple[QualityWindow, ...]:
        """One entry for each model and source of problems that has a pair, all sources together first."""
        self._forget(now_s)
        keys = sorted({cell.key for cell, count in self._cells.items() if count}, key=_all_first)
        return tuple(self._window(now_s, key) for key in keys)

    def _window(self, now_s: float, key: _Key) -> QualityWindow:
        c = self.confusion(now_s, key.model, problems=key.problems, audited_only=key.audited_only)
        total = c.true_positive + c.false_positive + c.true_negative + c.false_negative
        return QualityWindow(
            window_s=self.window_s,
            model=key.model,
            problems=key.problems,
            audited_only=key.audited_only,
            confusion=c,
            accuracy=wilson(c.true_positive + c.true_negative, total),
            false_positive_rate=wilson(c.false_positive, c.false_positive + c.true_negative),
            false_negative_rate=wilson(c.false_negative, c.false_negative + c.true_positive),
        )

    def _forget(self, now_s: float) -> None:
        while self._pairs and self._pairs[0].at_s < now_s - self.window_s:
            self._count(self._pairs.popleft(), -1)

    def _count(self, pair: Pair, step: int) -> None:
        for problems in {pair.problems, ALL_PROBLEMS}:
            for audited_only in (False, True) if pair.audited else (False,):
                cell = _Cell(_Key(pair.model, problems, audited_only), pair.predicted_valid, pair.valid)
                self._cells[cell] += step
                if not self._cells[cell]:
                    del self._cells[cell]


def _all_first(key: _Key) -> tuple[str, bool, str, bool]:
    return key.model, key.problems != ALL_PROBLEMS, key.problems, key.audited_only
