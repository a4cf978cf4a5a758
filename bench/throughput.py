"""Throughput of the platform over HTTP, kind by kind, over a Lean that costs nothing or over the real one.

    python -m bench.throughput --lean null --what lean --count 1024 --rounds 10
    python -m bench.throughput --lean embedded --what lean hybrid evaluator trajectories singles --count 256
    python -m bench.throughput --lean null --workers 1 --engines 32
    python -m bench.throughput --lean null --delay 0.03 --workers 1 2 4

Every round is `--count` candidates, single calls or rollouts; the first is not counted. Prints JSON: things a second,
the times of batches (`singles`: of calls; `trajectories`: of groups) in seconds, processor time for each thing by
process, resident memory, and for several numbers of workers the efficiency beside the first. `overhead_p99_s` of the
null Lean is the slowest batch less the time that its delays take. A Lean that costs nothing answers before the next
command can be sent, so it is many engines, in one process of a worker, that keep two cores busy. Target: so, with
`--lean null`, 1,500 candidates a second on two cores, and an overhead of at most 1 s on 1,024.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from typing import Any

import httpx
import numpy as np

from bench.loads import LOADS, Load
from bench.machine import describe
from bench.processes import LEANS, Platform, running

_COMMANDS_A_CHECK = 2  # of the native engine: the program, and the question about it
_CONNECTIONS = httpx.Limits(max_connections=256)


async def measure(platform: Platform, load: Load, count: int, rounds: int) -> dict[str, Any]:
    """One kind of load. `wall_s` is the whole time of the counted rounds."""
    async with httpx.AsyncClient(base_url=platform.url, timeout=900, limits=_CONNECTIONS) as client:
        await load(client, count)
        before, begin, times = platform.use(), time.perf_counter(), list[float]()
        for _ in range(rounds):
            times += await load(client, count)
        wall_s = time.perf_counter() - begin
    p50, p95, p99 = (round(float(np.quantile(times, q)), 4) for q in (0.5, 0.95, 0.99))
    return {
        "per_s": round(count * rounds / wall_s, 1),
        "wall_s": round(wall_s, 3),
        "times_s": {"p50": p50, "p95": p95, "p99": p99},
        "cpu_ms_each": platform.cpu_ms(before, count * rounds),
        "rss_mb": platform.rss_mb(),
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for workers in options.workers:
        evaluator = bool({"hybrid", "evaluator"} & set(options.what))
        lean = {"engines": options.engines, "delay_s": options.delay}
        with running(options.lean, workers=workers, evaluator=evaluator, **lean) as platform:
            for what in options.what:
                row = asyncio.run(measure(platform, LOADS[what], options.count, options.rounds))
                if options.lean == "null" and what == "lean":
                    delays_s = options.count * options.delay * _COMMANDS_A_CHECK / (workers * options.engines)
                    row["overhead_p99_s"] = round(row["times_s"]["p99"] - delays_s, 3)
                first = next((one for one in rows if one["what"] == what), None)
                if first is not None:
                    ideal = first["per_s"] * workers / first["workers"]
                    row["efficiency"] = round(row["per_s"] / ideal, 3)
                rows.append({"what": what, "workers": workers, **row})
    return {
        "lean": options.lean,
        "engines_a_worker": options.engines,
        "delay_s": options.delay,
        "count": options.count,
        "rounds": options.rounds,
        "runs": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lean", choices=LEANS, default="null")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds that each command of the null Lean takes")
    parser.add_argument("--what", nargs="+", choices=LOADS, default=["lean"])
    parser.add_argument("--workers", nargs="+", type=int, default=[2], help="worker processes")
    parser.add_argument("--engines", type=int, default=1, help="engines of each worker")
    parser.add_argument("--count", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=10)
    machine = describe()
    print(json.dumps({"machine": machine, **run(parser.parse_args())}, indent=2))


if __name__ == "__main__":
    main()
