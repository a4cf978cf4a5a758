"""How one embedded engine holds out: rate, latency and memory over many checks.

    python bench/engine_soak.py --checks 5000

Prints one line for each thousand checks and a summary as JSON. Memory is the resident set of the engine's process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time

from lean_worker.engines.embedded.engine import EmbeddedEngine
from lean_worker.engines.embedded.layout import Installation
from services.contracts.lean import CheckTask

PROOFS = (
    "by omega",
    "by simp [Nat.add_comm]",
    "by\n  induction n with\n  | zero => simp\n  | succ n ih => omega",
    "by rfl",  # wrong
    "Nat.add_comm _ _",
)


def task(i: int) -> CheckTask:
    statement = f"theorem t{i % 97} (n : Nat) : n + {i % 97} = {i % 97} + n"
    return CheckTask(code=f"{statement} := {PROOFS[i % len(PROOFS)]}", statement=statement, timeout_s=30)


async def soak(checks: int, warm_up: int) -> dict[str, object]:
    engine = EmbeddedEngine(Installation.locate())
    begin = time.monotonic()
    await engine.start()
    started = time.monotonic() - begin
    for i in range(warm_up):
        await engine.check(task(i))
    sizes: list[int] = []
    seconds: list[float] = []
    accepted = 0
    for i in range(checks):
        begin = time.monotonic()
        answer = await engine.check(task(i))
        seconds.append(time.monotonic() - begin)
        accepted += bool(answer.target and answer.target.kernel_accepts)
        sizes.append(engine.rss_bytes)
        if (i + 1) % 1000 == 0:
            part = seconds[-1000:]
            print(f"{i + 1}: {1 / statistics.fmean(part):.1f} checks/s, RSS {sizes[-1] / 1e6:.0f} MB", flush=True)
    await engine.stop()
    ordered = sorted(seconds)
    return {
        "checks": checks,
        "accepted": accepted,
        "start_s": round(started, 2),
        "per_second": round(checks / sum(seconds), 1),
        "median_ms": round(statistics.median(seconds) * 1000, 1),
        "p95_ms": round(ordered[int(0.95 * len(ordered))] * 1000, 1),
        "rss_first_mb": round(max(sizes[: len(sizes) // 10]) / 1e6),
        "rss_last_mb": round(max(sizes[-len(sizes) // 10 :]) / 1e6),
        "rss_max_mb": round(max(sizes) / 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checks", type=int, default=5000)
    parser.add_argument("--warm-up", type=int, default=100)
    arguments = parser.parse_args()
    print(json.dumps(asyncio.run(soak(arguments.checks, arguments.warm_up))))


if __name__ == "__main__":
    main()
