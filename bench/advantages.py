"""Time equations 1 to 6 on a whole batch: 32 groups x 32 rollouts x 200 steps, flat arrays, one core.

    python bench/advantages.py [--groups 32] [--rollouts 32] [--steps 200] [--repeats 20]

Prints the best and the median of the repeats in milliseconds; the limit is 100 ms for `step_advantages`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from services.rewards.advantages import PLANNING, step_advantages
from services.rewards.arrays import in_statistics, process_band, reward_tenths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("groups", 32), ("rollouts", 32), ("steps", 200), ("repeats", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    size = options.groups * options.rollouts * options.steps
    rollout = np.repeat(np.arange(options.groups * options.rollouts), options.steps)
    group = rollout // options.rollouts
    stage = rng.integers(PLANNING, 5, size)
    beta, gamma = rng.integers(-1, 2, size), rng.integers(-1, 1, size)
    alpha = np.repeat(rng.choice((-1, 1), options.groups * options.rollouts), options.steps)

    def prepare() -> tuple[np.ndarray, np.ndarray]:
        in_band = process_band(group, rollout, alpha)
        return reward_tenths(alpha, beta, gamma, in_band, stage == PLANNING), in_statistics(beta, in_band)

    reward, mask = prepare()
    hashed = rollout * 7_919 + 10**12  # ids as a trainer may have them: far apart
    print(f"{size} steps")
    report("band and rewards (equations 1 to 3)", prepare, options.repeats)
    for title, ids in (("dense ids", rollout), ("sparse ids", hashed)):

        def advantages(ids: np.ndarray = ids) -> object:
            return step_advantages(group, ids, stage, reward, mask, stages=5, alpha=alpha)

        report(f"advantages and weights, {title}", advantages, options.repeats)


def report(title: str, call: Callable[[], object], repeats: int) -> None:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    print(f"{title}: best {min(times):.1f} ms, median {statistics.median(times):.1f} ms")


if __name__ == "__main__":
    main()
