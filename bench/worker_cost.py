"""What a Lean worker costs besides Lean, and how busy it keeps its slots.

    python -m bench.worker_cost --jobs 2000 --ahead 0 1 2 --check-ms 0 26

A worker process of instant engines (`bench.instant`) works off a queue on an embedded server. For every number of jobs
claimed ahead and every length of a check it prints JSON: the worker's CPU for each job, ms; the rate; and the share of
time in which its slots were checking, which claims from a far or busy queue would lower.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time

import psutil

from services.contracts.lean import CheckTask, LeanJob
from services.queue import JobQueue, Submission, connect
from services.queue.server import EmbeddedServer

_STATEMENT = "theorem t (a b : Nat) : a + b = b + a"


def submissions(jobs: int) -> list[Submission]:
    made = []
    for number in range(jobs):
        task = CheckTask(code=f"{_STATEMENT} := by omega -- {number}", statement=_STATEMENT)
        job = LeanJob(key=f"k{number}", task=task)
        made.append(Submission(job.key, job.model_dump_json().encode(), 0, 60.0))
    return made


async def measure(url: str, prefix: str, jobs: int, slots: int, ahead: int, check_s: float) -> dict[str, object]:
    environment = {
        **os.environ,
        "LEAN_REWARD_QUEUE_URL": url,
        "LEAN_REWARD_QUEUE_PREFIX": prefix,
        "LEAN_REWARD_WORKER_COUNT": str(slots),
        "LEAN_REWARD_WORKER_CLAIM_AHEAD": str(ahead),
        "LEAN_REWARD_LOG_LEVEL": "warning",
        "INSTANT_S": str(check_s),
    }
    worker = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.instant", env=environment)
    try:
        async with connect(url) as redis:
            queue = JobQueue(redis, prefix=prefix)
            for _ in range(500):
                if await queue.workers():
                    break
                await asyncio.sleep(0.02)
            process = psutil.Process(worker.pid)
            before, begin = process.cpu_times(), time.monotonic()
            await queue.submit("bench", submissions(jobs), home="bench")
            left = jobs
            async for deliveries in queue.deliveries("bench"):
                left -= len(deliveries)
                if left <= 0:
                    break
            wall_s, after = time.monotonic() - begin, process.cpu_times()
    finally:
        worker.terminate()
        await worker.wait()
    cpu_s = (after.user - before.user) + (after.system - before.system)
    return {
        "slots": slots,
        "claimed_ahead": ahead,
        "check_ms": check_s * 1e3,
        "worker_cpu_ms_per_job": round(cpu_s / jobs * 1e3, 3),
        "jobs_per_s": round(jobs / wall_s, 1),
        "slots_busy": round(jobs * check_s / (wall_s * slots), 3),
    }


async def run(options: argparse.Namespace) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    with EmbeddedServer() as server:
        for check_ms in options.check_ms:
            for ahead in options.ahead:
                prefix = f"bench{len(rows)}"
                jobs = options.jobs if check_ms == 0 else min(options.jobs, round(options.slots * 8000 / check_ms))
                rows.append(await measure(server.url, prefix, jobs, options.slots, ahead, check_ms / 1e3))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--ahead", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--check-ms", type=float, nargs="+", default=[0.0, 26.0])
    print(json.dumps(asyncio.run(run(parser.parse_args())), indent=2))


if __name__ == "__main__":
    main()
