"""How cost grows with the number of candidates, the length of programs and the number of batches at once.

    python -m bench.cost_curves --lean null --most 65536

For each curve the processor time of all parts together, ms, is fitted as `a * x ** exponent` by least squares on
logarithms: of a whole batch against its candidates (1: each costs the same, however many), of a candidate against the
bytes of its program, and of a candidate against the batches that run at once (0: none). Start-up is not counted: every
point follows a batch that is not. Target: the exponent over candidates at most 1.05 up to 65,536. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.loads import batches
from bench.machine import describe
from bench.processes import LEANS, Platform, running
from bench.throughput import measure

_LEAST_WORK = 2_048  # candidates that one point is measured over, at least


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of log cost over log size."""
    return round(float(np.polyfit(np.log(sizes), np.log(costs), 1)[0]), 3)


def curve(platform: Platform, points: Sequence[tuple[int, int, int, int]], over: int) -> dict[str, Any]:
    """`points`: candidates, bytes of a program, batches at once, rounds; `over` says which of them is the size."""
    rows = []
    for candidates, size, concurrency, rounds in points:
        load = batches("lean", size=size, concurrency=concurrency)
        row = asyncio.run(measure(platform, load, candidates, rounds))
        each = row["cpu_ms_each"]
        cost = each["all"] * (candidates if over == 0 else 1)
        rows.append(
            {"x": (candidates, size, concurrency)[over], "cpu_ms": round(cost, 3), "each": each, "per_s": row["per_s"]}
        )
    return {"exponent": exponent([row["x"] for row in rows], [row["cpu_ms"] for row in rows]), "points": rows}


def run(lean: str, most: int) -> dict[str, Any]:
    counts = [64 * 4**step for step in range(12) if 64 * 4**step <= most]
    with running(lean) as platform:
        return {
            "candidates": curve(platform, [(n, 1_024, 1, max(1, _LEAST_WORK // n)) for n in counts], 0),
            "program_bytes": curve(platform, [(256, 256 * 4**step, 1, 4) for step in range(5)], 1),
            "batches_at_once": curve(platform, [(2_048, 1_024, n, 2) for n in (1, 4, 16, 64)], 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lean", choices=LEANS, default="null")
    parser.add_argument("--most", type=int, default=65_536)
    options = parser.parse_args()
    machine = describe()
    print(json.dumps({"machine": machine, "lean": options.lean, **run(options.lean, options.most)}, indent=2))


if __name__ == "__main__":
    main()
