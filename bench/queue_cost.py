"""What the queue costs: CPU for each job, at the client and at the server, from submit to delivery.

One gateway and one worker share a process; the worker answers at once. Whole batches, for several claim limits:

    python -m bench.queue_cost --jobs 1024 --rounds 3 --limits 1 4 16 64

Prints JSON. CPU is the process's own clock and the server's INFO, so other load on the machine changes it little. All
figures are per job, in milliseconds of CPU; ``latency_p99_ms`` is wall-clock time from complete to delivery.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from dataclasses import asdict, dataclass
from statistics import median, quantiles

from redis.asyncio import Redis

from services.queue import Completion, JobQueue, Submission, connect
from services.queue.server import EmbeddedServer


@dataclass(frozen=True)
class Cost:
    claim_limit: int
    client_ms: float
    server_ms: float
    total_ms: float
    jobs_per_s: float
    latency_p99_ms: float


async def server_cpu_s(redis: Redis) -> float:
    info = await redis.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


async def one_round(queue: JobQueue, name: str, jobs: int, payload: bytes, result: bytes, limit: int) -> list[float]:
    """Run one batch; the time from complete to delivery of each job."""
    completed: dict[str, float] = {}
    latencies: list[float] = []

    async def gateway() -> None:
        submissions = [Submission(f"{name}-{number}", payload, 0, 60.0) for number in range(jobs)]
        await queue.submit(name, submissions, home=name)
        async for batch in queue.deliveries(name):
            latencies.extend(time.perf_counter() - completed[delivery.key] for delivery in batch)
            if len(latencies) == jobs:
                return

    async def worker() -> None:
        left = jobs
        while left:
            claims = await queue.claim("bench-worker", limit, 5.0)
            now = time.perf_counter()
            completed.update({claim.key: now for claim in claims})
            left -= len(claims)
            accepted = await queue.complete([Completion(claim, result) for claim in claims])
            assert all(accepted)

    await asyncio.wait_for(asyncio.gather(gateway(), worker()), 300)
    return latencies


async def measure(redis: Redis, limit: int, options: argparse.Namespace) -> Cost:
    queue = JobQueue(redis, name=f"bench-{limit}")
    payload, result = b"x" * options.payload_bytes, b"y" * options.result_bytes
    await one_round(queue, "warm-up", min(options.jobs, 64), payload, result, limit)
    client, server, wall, latencies = [], [], [], []
    for number in range(options.rounds):
        cpu, server_cpu, start = time.process_time(), await server_cpu_s(redis), time.perf_counter()
        latencies += await one_round(queue, f"round-{number}", options.jobs, payload, result, limit)
        wall.append(time.perf_counter() - start)
        client.append((time.process_time() - cpu) / options.jobs)
        server.append((await server_cpu_s(redis) - server_cpu) / options.jobs)
    return Cost(
        claim_limit=limit,
        client_ms=round(1000 * median(client), 4),
        server_ms=round(1000 * median(server), 4),
        total_ms=round(1000 * median(c + s for c, s in zip(client, server, strict=True)), 4),
        jobs_per_s=round(options.jobs / median(wall)),
        latency_p99_ms=round(1000 * quantiles(latencies, n=100)[98], 2),
    )


async def run(url: str, options: argparse.Namespace) -> dict[str, object]:
    async with connect(url) as redis:
        version = (await redis.info("server"))["redis_version"]
        costs = [asdict(await measure(redis, limit, options)) for limit in options.limits]
    return {
        "server_protocol_version": version,
        "jobs": options.jobs,
        "rounds": options.rounds,
        "payload_bytes": options.payload_bytes,
        "result_bytes": options.result_bytes,
        "costs": costs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1024, help="jobs in a batch")
    parser.add_argument("--rounds", type=int, default=3, help="batches for each claim limit; medians are reported")
    parser.add_argument("--limits", type=int, nargs="+", default=[1, 4, 16, 64], help="claim limits")
    parser.add_argument("--payload-bytes", type=int, default=2000)
    parser.add_argument("--result-bytes", type=int, default=600)
    parser.add_argument("--url", help="a server of your own (default: an embedded one)")
    options = parser.parse_args()
    if options.url:
        report = asyncio.run(run(options.url, options))
    else:
        with EmbeddedServer() as server:
            report = asyncio.run(run(server.url, options))
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
