"""Trainers that ask for twice what the workers can do: what is let in is answered in time, the rest told when to come.

    python -m bench.overload --seconds 120

A queue, a gateway and a worker whose engines answer after `--check` seconds, so that the capacity is known and no
processor is the bottleneck. Each trainer has a key of its own and sends a batch of fresh programs at a fixed pace,
whether or not the last one is answered (an open loop); one that is refused comes back after `Retry-After`, and is given
up when it is `--patience` seconds old. Prints JSON; `met` says which of the targets hold:

- `goodput`: candidates that Lean decided, a second, as a part of the capacity: at least 0.9 in the second half.
- `deadlines`: no answer of an admitted batch comes later than its deadline and a second.
- `flat`: the processes' memory in the last quarter is at most a tenth and 16 MB above that of the second quarter.
- `hangs`: no request ended without an answer, and `/healthz` answered within a second all the time.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Any

import httpx
import psutil

from bench.loads import STATEMENT, program
from bench.processes import free_port, until_ready
from services.queue.server import EmbeddedServer

_LATE_S = 1.0


@dataclass
class Seen:
    """What happened. Times are seconds since the start."""

    decided: list[tuple[float, int, str]] = field(default_factory=list)
    over_deadline_s: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    retries: list[int] = field(default_factory=list)
    let_in_after: Counter[int] = field(default_factory=Counter)
    health_s: list[float] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)
    starved: dict[str, float] = field(default_factory=dict)
    undecided: int = 0
    given_up: int = 0


class Overload:
    def __init__(self, url: str, options: argparse.Namespace) -> None:
        self._options = options
        self._began = time.monotonic()
        self._client = httpx.AsyncClient(
            base_url=url, timeout=3 * options.deadline, limits=httpx.Limits(max_connections=None)
        )
        self.capacity = options.engines / options.check
        self.seen = Seen()

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    async def run(self, processes: dict[str, psutil.Process]) -> None:
        options = self._options
        watchers = [asyncio.create_task(self._health()), asyncio.create_task(self._memory(processes))]
        trainers = [asyncio.create_task(self._trainer(f"trainer-{n}")) for n in range(options.trainers)]
        waited = {name: _waited_s(process) for name, process in processes.items()}
        await asyncio.gather(*trainers)
        self.seen.starved = {
            name: round((_waited_s(process) - waited[name]) / self.now, 3) for name, process in processes.items()
        }
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
        await self._client.aclose()

    async def _trainer(self, key: str) -> None:
        options = self._options
        pace_s = options.batch * options.trainers / (options.load * self.capacity)
        await asyncio.sleep(random.uniform(0, pace_s))
        batches = set()
        while self.now < options.seconds:
            batches.add(asyncio.create_task(self._batch(key)))
            await asyncio.sleep(pace_s)
        await asyncio.gather(*batches)

    async def _batch(self, key: str) -> None:
        options, seen, born = self._options, self.seen, self.now
        candidates = [
            {"id": f"c{n}", "statement": STATEMENT, "code": program(n, options.size)} for n in range(options.batch)
        ]
        body = json.dumps({"candidates": candidates, "mode": "lean", "cutoff": {"deadline_s": options.deadline}})
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        for attempt in range(1_000):
            sent = self.now
            try:
                answer = await self._client.post("/v1/proofs/score", content=body, headers=headers)
            except httpx.HTTPError as error:
                seen.statuses[type(error).__name__] += 1
                return
            seen.statuses[str(answer.status_code)] += 1
            if answer.status_code == 200:
                seen.let_in_after[attempt] += 1
                seen.over_deadline_s.append(self.now - sent - options.deadline)
                decided = sum(result["source"] == "lean" for result in answer.json()["results"])
                seen.decided.append((self.now, decided, key))
                seen.undecided += options.batch - decided
                return
            if answer.status_code != 429:
                return
            wait_s = int(answer.headers["Retry-After"])
            seen.retries.append(wait_s)
            if self.now + wait_s > min(born + options.patience, options.seconds):
                seen.given_up += 1
                return
            await asyncio.sleep(wait_s + random.uniform(0, 0.5))

    async def _health(self) -> None:
        while True:
            begin = time.monotonic()
            await self._client.get("/healthz")
            self.seen.health_s.append(time.monotonic() - begin)
            await asyncio.sleep(0.5)

    async def _memory(self, processes: dict[str, psutil.Process]) -> None:
        while True:
            await asyncio.sleep(1)
            self.seen.memory.append((self.now, sum(p.memory_info().rss for p in processes.values()) / 1e6))

    def report(self) -> dict[str, Any]:
        options, seen = self._options, self.seen
        half = options.seconds / 2
        late = [decided for at, decided, _ in seen.decided if half < at <= options.seconds]
        goodput = sum(late) / half / self.capacity
        by_key = Counter[str]()
        for _, decided, key in seen.decided:
            by_key[key] += decided
        second = mean(rss for at, rss in seen.memory if 0.25 < at / options.seconds <= 0.5)
        last = mean(rss for at, rss in seen.memory if 0.75 < at / options.seconds <= 1.0)
        ended_badly = sum(n for status, n in seen.statuses.items() if status not in ("200", "429"))
        shares = [by_key[f"trainer-{n}"] for n in range(options.trainers)]
        return {
            "capacity_per_s": self.capacity,
            "offered_per_s": options.load * self.capacity,
            "goodput": round(goodput, 3),
            "answers": dict(seen.statuses),
            "let_in_at_attempt": {n + 1: count for n, count in sorted(seen.let_in_after.items())},
            "given_up": seen.given_up,
            "undecided_of_admitted": seen.undecided,
            "retry_after_s": {"median": median(seen.retries), "max": max(seen.retries)} if seen.retries else {},
            "over_deadline_s": round(max(seen.over_deadline_s, default=math.nan), 3),
            "of_trainers": {"least": min(shares), "most": max(shares)},
            "health_p99_ms": round(quantiles(seen.health_s, n=100)[98] * 1e3, 1),
            "health_max_ms": round(max(seen.health_s) * 1e3, 1),
            "waited_for_a_processor": seen.starved,
            "memory_mb": {"second_quarter": round(second, 1), "last_quarter": round(last, 1)},
            "met": {
                "goodput": goodput >= 0.9,
                "deadlines": max(seen.over_deadline_s, default=0) <= _LATE_S,
                "flat": last <= 1.1 * second + 16,
                "hangs": not ended_badly and max(seen.health_s) < 1.0,
            },
        }


def _waited_s(process: psutil.Process) -> float:
    """Time in which it could run and no processor was free: where that is much, other work is measured."""
    return int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[1]) / 1e9


@contextmanager
def platform(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, psutil.Process]]]:
    """(URL of the gateway, its processes)."""
    keys = (f"trainer-{n}" for n in range(options.trainers))
    with EmbeddedServer() as server:
        port = free_port()
        environment = {
            **os.environ,
            "LEAN_REWARD_QUEUE_URL": server.url,
            "LEAN_REWARD_GATEWAY_PORT": str(port),
            "LEAN_REWARD_GATEWAY_KEYS": ",".join(f"{key}:{hashlib.sha256(key.encode()).hexdigest()}" for key in keys),
            # As docs/operations.md says: no more in flight than the workers can do within the deadline.
            "LEAN_REWARD_GATEWAY_MAX_IN_FLIGHT": str(
                round(options.room * options.deadline * options.engines / options.check)
            ),
            "LEAN_REWARD_WORKER_COUNT": str(options.engines),
            "LEAN_REWARD_LOG_LEVEL": "warning",
            "INSTANT_S": str(options.check),
        }
        gateway = subprocess.Popen([sys.executable, "-m", "services.runtime.cli", "gateway"], env=environment)
        worker = subprocess.Popen([sys.executable, "-m", "bench.instant"], env=environment)
        url = f"http://127.0.0.1:{port}"
        try:
            until_ready(url)
            yield (
                url,
                {
                    "gateway": psutil.Process(gateway.pid),
                    "worker": psutil.Process(worker.pid),
                    "queue": psutil.Process(server.pid),
                },
            )
        finally:
            for process in (gateway, worker):
                process.terminate()
                process.wait()


def run(options: argparse.Namespace) -> dict[str, Any]:
    async def measured(url: str, processes: dict[str, psutil.Process]) -> dict[str, Any]:
        overload = Overload(url, options)
        await overload.run(processes)
        return overload.report()

    with platform(options) as (url, processes):
        return asyncio.run(measured(url, processes))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--seconds", type=float, default=120.0)
    made.add_argument("--load", type=float, default=2.0, help="offered, in capacities")
    made.add_argument("--trainers", type=int, default=8)
    made.add_argument("--batch", type=int, default=32, help="candidates in a batch")
    made.add_argument("--size", type=int, default=1024, help="of a program, bytes")
    made.add_argument("--engines", type=int, default=32)
    made.add_argument("--check", type=float, default=0.5, help="time of a check, seconds")
    made.add_argument("--deadline", type=float, default=20.0, help="of a batch, seconds")
    made.add_argument("--room", type=float, default=0.7, help="in flight, as a part of capacity times deadline")
    made.add_argument("--patience", type=float, default=60.0, help="a refused batch is given up when it is so old")
    return made


def main() -> None:
    report = run(parser().parse_args())
    print(json.dumps(report, indent=2))
    sys.exit(0 if all(report["met"].values()) else 1)


if __name__ == "__main__":
    main()
