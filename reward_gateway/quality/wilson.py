"""Wilson's score interval for a rate."""

from __future__ import annotations

import math

from services.contracts.evaluator import Interval

Z_95 = 1.959963984540054


def wilson(successes: int, n: int, z: float = Z_95) -> Interval | None:
    """The interval of `successes` in `n` trials at confidence `z` (standard deviations), or None without a trial.

    Wilson (1927): unlike the plain normal interval it stays inside [0, 1] and is sensible for few trials and for rates
    near 0 and 1.
    """
    if n == 0:
        return None
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    # Of none and of all the bounds are exactly 0 and 1; rounding would leave 3e-17.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(rate=rate, low=low, high=high, n=n)
