"""Predicted check times, learned online from the checks that finish.

A ridge regression of the logarithm of the check time on a few counts from the program's text, updated one check at a
time (recursive least squares with forgetting), plus what is left over for each problem, shrunk towards zero while few
of its checks are known. Times are heavy-tailed, so everything happens on the logarithm.
"""

from __future__ import annotations

import math
import re
from collections import Counter, OrderedDict

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

_TACTICS = (
    ("decide", "native_decide"),
    ("simp", "simp_all", "simpa", "field_simp"),
    ("omega", "linarith", "nlinarith", "polyrith", "positivity"),
    ("norm_num", "ring", "ring_nf", "norm_cast", "push_cast"),
    ("aesop", "grind", "exact?", "apply?", "tauto", "bv_decide"),
    ("rcases", "obtain", "cases", "induction", "interval_cases", "fin_cases", "split"),
    ("have", "calc", "suffices", "show"),
    ("rw", "rfl", "exact", "apply", "refine"),
)
_PUNCTUATION = str.maketrans(dict.fromkeys("()[]{}⟨⟩<>;,:·.|", " "))
_NUMBER = re.compile(r"[0-9]{3,}")

_LONGEST = 32_768  # characters that are looked at: what follows tells little more, and costs the loop's time

SIZE = 4 + len(_TACTICS)
_SMALLEST_S = 1e-3


def features(program: str) -> Vector:
    """A vector of length `SIZE` from the program's text: length, lines, big numbers, kernel use, tactic families."""
    program = program[:_LONGEST]
    words = Counter(program.translate(_PUNCTUATION).split())
    counts = [sum([words.get(tactic, 0) for tactic in tactics]) for tactics in _TACTICS]
    raw = [len(program), program.count("\n"), len(_NUMBER.findall(program)), program.count("+kernel"), *counts]
    return np.log1p(np.asarray(raw, dtype=np.float64))


class CheckTimePredictor:
    """Predicts seconds of a check; one instance serves one gateway. Not thread-safe.

    Args:
        forgetting: weight of the past at each update, so that a policy that changes is followed.
        shrinkage: how many checks of a problem it takes until half of its own deviation is believed.
        problems: how many problems are remembered; the least recently seen leave first.
    """

    def __init__(self, *, forgetting: float = 0.9995, shrinkage: float = 2.0, problems: int = 20_000) -> None:
        self._forgetting = forgetting
        self._shrinkage = shrinkage
        self._limit = problems
        self._weights: Vector = np.zeros(SIZE + 1)
        self._covariance = np.eye(SIZE + 1) * 10.0
        self._problems: OrderedDict[str, tuple[float, float]] = OrderedDict()  # problem -> (count, sum of residuals)

    def predict(self, x: Vector, problem: str | None) -> float:
        """Seconds that a check with features `x` of `problem` should take; 1 s before anything was observed."""
        return math.exp(min(max(self._log_time(x) + self._deviation(problem), -7.0), 7.0))

    def observe(self, x: Vector, problem: str | None, elapsed_s: float) -> None:
        """Learn from a finished check. A timeout may be passed with its limit: the time is then a lower bound."""
        target = math.log(max(elapsed_s, _SMALLEST_S))
        z = np.append(x, 1.0)
        gain = self._covariance @ z
        gain = gain / (self._forgetting + z @ gain)
        residual = target - self._log_time(x)
        self._weights = self._weights + gain * (residual - self._deviation(problem))
        covariance = (self._covariance - np.outer(gain, z @ self._covariance)) / self._forgetting
        # Forgetting inflates directions that are never observed; the bound keeps the filter from blowing up.
        self._covariance = (covariance + covariance.T) / 2 * min(1.0, 1e4 / max(np.trace(covariance), 1e-12))
        if problem is not None:
            count, total = self._problems.pop(problem, (0.0, 0.0))
            self._problems[problem] = (count * 0.98 + 1, total * 0.98 + residual)
            if len(self._problems) > self._limit:
                self._problems.popitem(last=False)

    def _log_time(self, x: Vector) -> float:
        return float(self._weights[:-1] @ x + self._weights[-1])

    def _deviation(self, problem: str | None) -> float:
        count, total = self._problems.get(problem, (0.0, 0.0)) if problem is not None else (0.0, 0.0)
        return total / (count + self._shrinkage)
