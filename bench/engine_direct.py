"""The rate of N engines driven directly, without queue or HTTP: what the platform around them is measured against.

    python -m bench.engine_direct examples/proofs.jsonl --engines 2 --count 1024 --leave-out lean_timeout

Prints JSON. Candidates that the precheck rejects count as candidates, as they do over HTTP; `lean_checks` counts the
rest. `wrong` lists outcomes whose reason is not the one that the file expects.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, quantiles

from bench.candidates import Candidate, lean_task, read_candidates
from lean_worker.engines.catalog import embedded_engine, embedded_installation
from lean_worker.slot import Slot
from services.contracts.lean import LeanOutcome
from services.runtime.settings import load_settings


async def drive(candidates: Sequence[Candidate], engines: int, timeout_s: float) -> dict[str, object]:
    """Run all candidates on `engines` warm engines that share one line, and measure."""
    installation = embedded_installation(load_settings())
    slots = [Slot(index, embedded_engine(installation), ("",)) for index in range(engines)]
    begin = time.monotonic()
    await asyncio.gather(*(slot.bring_up() for slot in slots))
    ready_s = time.monotonic() - begin
    line = iter(candidates)
    outcomes: list[tuple[Candidate, LeanOutcome]] = []
    seconds: list[float] = []
    rejected = 0

    async def work(slot: Slot) -> None:
        nonlocal rejected
        for candidate in line:
            task = lean_task(candidate, timeout_s)
            if task is None:
                rejected += 1
                continue
            start = time.monotonic()
            outcomes.append((candidate, await slot.check(task)))
            seconds.append(time.monotonic() - start)
            await slot.settle()

    try:
        begin, cpu = time.monotonic(), time.process_time()
        await asyncio.gather(*(work(slot) for slot in slots))
        wall_s, cpu_s = time.monotonic() - begin, time.process_time() - cpu
        rss = [slot.engine.rss_bytes for slot in slots]
    finally:
        await asyncio.gather(*(slot.stop() for slot in slots))
    cuts = quantiles(seconds, n=100)
    return {
        "engines": engines,
        "candidates": len(candidates),
        "lean_checks": len(outcomes),
        "prechecked": rejected,
        "ready_s": round(ready_s, 2),
        "wall_s": round(wall_s, 3),
        "candidates_per_s": round(len(candidates) / wall_s, 2),
        "checks_per_s": round(len(outcomes) / wall_s, 2),
        "check_ms": {
            "mean": round(mean(seconds) * 1e3, 1),
            **{f"p{p}": round(cuts[p - 1] * 1e3, 1) for p in (50, 95, 99)},
        },
        "python_cpu_ms_per_check": round(cpu_s / len(outcomes) * 1e3, 3),
        "reasons": dict(Counter(outcome.reason.value for _, outcome in outcomes).most_common()),
        "wrong": {
            candidate.id: f"{outcome.reason}, expected {candidate.expected}"
            for candidate, outcome in outcomes
            if candidate.expected not in (None, outcome.reason.value)
        },
        "restarts": sum(slot.restarts for slot in slots),
        "rss_mb": [round(size / 1e6) for size in rss],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="JSON lines with id, code, statement?, header?, expected?")
    parser.add_argument("--engines", type=int, default=2)
    parser.add_argument("--count", type=int, help="repeat the file up to so many candidates")
    parser.add_argument("--timeout", type=float, default=10.0, help="wall-clock limit of a check, seconds")
    parser.add_argument("--leave-out", nargs="*", default=[], metavar="REASON", help="skip what the file expects so")
    options = parser.parse_args()
    candidates = read_candidates(options.file, options.count, options.leave_out)
    print(json.dumps(asyncio.run(drive(candidates, options.engines, options.timeout)), indent=2))


if __name__ == "__main__":
    main()
