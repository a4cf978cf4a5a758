"""One Redis under a fleet: claims, idle operations and memory, with thousands of simulated workers and many trainers.

    python -m bench.queue_load --workers 10000 --trainers 50 --seconds 60
    python -m bench.queue_load --sweep 1000 2000 5000 10000 20000 --seconds 20

Workers and trainers are coroutines, spread over `--processes` processes, each with the connections that a real one has:
a worker waits for jobs, listens for cancellations, announces itself every 5 s, renews its leases, and sleeps `--check`
seconds for a check; a trainer submits a batch, reads its results, cancels what is left, and submits again; gateways
look at the queue every second. What is measured is the server, and how fast these processes can ask it: where
`simulation_late_ms` is large, the second.

For each size: idle first (nobody submits), then loaded. The load is `--busy` of what the workers could do, bounded by
`--rate` jobs a second. Prints JSON, one object a size.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import random
import resource
import secrets
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from statistics import quantiles
from typing import Any

import redis
import uvloop

from bench.thin_redis import ThinRedis
from reward_gateway.batches.desk import LeanDesk
from services.contracts.lean import EngineIdentity, WorkerInfo
from services.queue import Claim, Completion, JobQueue, QueueUnavailable, Submission
from services.queue.server import EmbeddedServer

_ANNOUNCE_S, _HEARTBEAT_S, _CLAIM_WAIT_S = 5.0, 2.5, 10.0  # as lean_worker/worker.py
_FILES = 150_000
_IDENTITY = EngineIdentity(engine="none", toolchain="none", environment="none")


@dataclass
class Counts:
    """What one process saw while it was measured. Times in seconds."""

    claim_s: list[float] = field(default_factory=list)
    wait_s: list[float] = field(default_factory=list)
    done: int = 0
    unavailable: int = 0
    late_s: list[float] = field(default_factory=list)

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]


class TimedQueue(JobQueue):
    """Notes how long the server takes for a claim, the wait for jobs left out."""

    counts: Counts

    async def _claim_now(self, worker: str, limit: int) -> tuple[int, list[Claim]]:
        begin = time.perf_counter()
        try:
            return await super()._claim_now(worker, limit)
        finally:
            self.counts.claim_s.append(time.perf_counter() - begin)


@dataclass
class Worker:
    """A worker with some engines."""

    queue: JobQueue
    name: str
    engines: int
    check_s: float
    counts: Counts
    held: dict[str, Claim] = field(default_factory=dict)
    running: set[asyncio.Future[None]] = field(default_factory=set)

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        return [self._forever(part) for part in (self._work, self._announce, self._heartbeat)] + [self._listen()]

    async def _forever(self, part: Any) -> None:
        while True:
            try:
                await part()
            except QueueUnavailable:
                self.counts.unavailable += 1
                await asyncio.sleep(random.uniform(0.5, 1.5))

    async def _work(self) -> None:
        room = self.engines - len(self.running)
        if room:
            for claim in await self.queue.claim(self.name, room, _CLAIM_WAIT_S):
                self.counts.wait_s.append(time.time() - float(claim.payload[:20]))
                self.held[claim.token] = claim
                self.running.add(asyncio.ensure_future(self._check(claim)))
        else:
            _, self.running = await asyncio.wait(self.running, return_when=asyncio.FIRST_COMPLETED)

    async def _check(self, claim: Claim) -> None:
        await asyncio.sleep(random.expovariate(1 / self.check_s))
        with contextlib.suppress(QueueUnavailable):
            if self.held.pop(claim.token, None) and await self.queue.complete([Completion(claim, b"y" * 600)]) == [
                True
            ]:
                self.counts.done += 1

    async def _announce(self) -> None:
        info = WorkerInfo(
            worker=self.name, identity=_IDENTITY, engines=self.engines, ready=1, headers=("",), started_at=1.0
        )
        await self.queue.announce(self.name, info.model_dump_json().encode(), 3 * _ANNOUNCE_S)
        await asyncio.sleep(random.uniform(0.9, 1.1) * _ANNOUNCE_S)

    async def _heartbeat(self) -> None:
        await asyncio.sleep(random.uniform(0.8, 1.2) * _HEARTBEAT_S)
        if self.held:
            for token in await self.queue.heartbeat(self.name, list(self.held.values())):
                self.held.pop(token, None)

    async def _listen(self) -> None:
        async for tokens in self.queue.cancellations(self.name):
            for token in tokens:
                self.held.pop(token, None)


async def trainer(queue: JobQueue, name: str, rate: float, batch: int) -> None:
    """Keeps `rate` jobs a second coming, in batches, of which each is read to its end; a part of them is cancelled."""
    results = asyncio.ensure_future(_read(queue.deliveries(name)))
    try:
        await asyncio.sleep(random.uniform(0, batch / rate))
        number = 0
        while True:
            began = time.monotonic()
            payload = f"{time.time():020.6f}".encode() + b"x" * 2000
            jobs = [Submission(f"{name}-{number}-{i}", payload, 9 * random.randint(0, 1), 60.0) for i in range(batch)]
            subscriber = f"{name}-{number}"
            with contextlib.suppress(QueueUnavailable):
                await queue.submit(subscriber, jobs, home=name, flow=name, ttl_s=120)
            await asyncio.sleep(max(0.0, batch / rate - (time.monotonic() - began)))
            with contextlib.suppress(QueueUnavailable):
                await queue.unsubscribe(subscriber)  # the cutoff
            number += 1
    finally:
        results.cancel()


async def _read(deliveries: AsyncIterator[Any]) -> None:
    async for _ in deliveries:
        pass


async def _process(url: str, name: str, share: dict[str, Any], pipe: Connection) -> None:
    """Simulate a share of the fleet; commands come over the pipe: `load`, `count` (begin) and `stop` (answer)."""
    counts = Counts()
    clients: list[ThinRedis] = []
    tasks: list[asyncio.Future[Any]] = []

    def queue() -> JobQueue:
        clients.append(ThinRedis(url))
        made = TimedQueue(clients[-1], name=name, max_depth=10**7)
        made.counts = counts
        return made

    for number in range(share["workers"]):
        worker = Worker(queue(), f"{share['id']}-{number}", share["engines"], share["check_s"], counts)
        tasks += [asyncio.ensure_future(loop) for loop in worker.loops()]
        if number % 50 == 49:
            await asyncio.sleep(0.05)  # so that they do not all connect in one moment
    for _ in range(share["gateways"]):
        desk = LeanDesk(queue(), None, secrets.token_hex(4))
        tasks.append(asyncio.ensure_future(desk.watch()))
    tasks.append(asyncio.ensure_future(_lateness(counts)))
    pipe.send("ready")
    while True:
        command = await asyncio.to_thread(pipe.recv)
        if command == "load":
            tasks += [
                asyncio.ensure_future(trainer(queue(), f"{share['id']}-t{n}", share["rate"], share["batch"]))
                for n in range(share["trainers"])
            ]
        elif command == "count":
            counts.clear()
        elif command == "tell":
            pipe.send(counts)
        else:
            break
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for client in clients:
        await client.aclose()


async def _lateness(counts: Counts) -> None:
    """How late this process's own loop is: when it is, the figures measure the simulation."""
    while True:
        begin = time.perf_counter()
        await asyncio.sleep(0.05)
        counts.late_s.append(time.perf_counter() - begin - 0.05)


def _main(url: str, name: str, share: dict[str, Any], pipe: Connection) -> None:
    _raise_file_limit()
    uvloop.run(_process(url, name, share, pipe))


def _raise_file_limit() -> None:
    """A worker has three connections; as root the hard limit can be raised too, which the server inherits."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(most, _FILES), max(most, _FILES)))


class Fleet:
    """The processes that simulate everybody; a context manager."""

    def __init__(self, url: str, workers: int, rate: float, options: argparse.Namespace) -> None:
        self._pipes: list[Connection] = []
        self._processes = []
        name = f"bench-{secrets.token_hex(3)}"
        context = multiprocessing.get_context("spawn")
        for number in range(options.processes):
            share = {
                "id": f"p{number}",
                "workers": _part(workers, number, options.processes),
                "trainers": _part(options.trainers, number, options.processes),
                "gateways": _part(options.gateways, number, options.processes),
                "check_s": options.check,
                "engines": options.engines,
                "rate": rate / options.trainers,
                "batch": options.batch,
            }
            ours, theirs = context.Pipe()
            process = context.Process(target=_main, args=(url, name, share, theirs), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)

    def __enter__(self) -> Fleet:
        for pipe in self._pipes:
            if not pipe.poll(300) or pipe.recv() != "ready":
                raise RuntimeError("a part of the fleet did not start")
        return self

    def say(self, command: str) -> None:
        for pipe in self._pipes:
            pipe.send(command)

    def counts(self) -> Counts:
        self.say("tell")
        total = Counts()
        for pipe in self._pipes:
            part: Counts = pipe.recv()
            total.claim_s += part.claim_s
            total.wait_s += part.wait_s
            total.late_s += part.late_s
            total.done += part.done
            total.unavailable += part.unavailable
        return total

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.send("stop")
        for process in self._processes:
            process.join(20)
            if process.is_alive():
                process.kill()


def _part(whole: int, number: int, parts: int) -> int:
    return whole // parts + (number < whole % parts)


def _server(client: redis.Redis) -> dict[str, float]:
    info: dict[str, Any] = client.info()
    return {
        "commands": info["total_commands_processed"],
        "cpu_s": info["used_cpu_user"] + info["used_cpu_sys"],
        "memory": info["used_memory"],
        "rss": info["used_memory_rss"],
        "clients": info["connected_clients"],
        "sent": info["total_net_output_bytes"],
    }


def _measured(client: redis.Redis, fleet: Fleet, seconds: float) -> dict[str, Any]:
    fleet.say("count")
    before, begin = _server(client), time.monotonic()
    time.sleep(seconds)
    after, counts = _server(client), fleet.counts()
    wall = time.monotonic() - begin
    return {
        "commands_per_s": round((after["commands"] - before["commands"]) / wall),
        "server_cpu_share": round((after["cpu_s"] - before["cpu_s"]) / wall, 3),
        "sent_mb_per_s": round((after["sent"] - before["sent"]) / wall / 1e6, 2),
        "memory_mb": round(after["memory"] / 1e6, 1),
        "rss_mb": round(after["rss"] / 1e6, 1),
        "clients": after["clients"],
        "checks_per_s": round(counts.done / wall, 1),
        "claim_ms": _percentiles(counts.claim_s),
        "wait_ms": _percentiles(counts.wait_s),
        "unavailable": counts.unavailable,
        "simulation_late_ms": _percentiles(counts.late_s),
    }


def _percentiles(seconds: list[float]) -> dict[str, float]:
    if len(seconds) < 2:
        return {}
    cuts = quantiles(seconds, n=100)
    return {"p50": round(cuts[49] * 1e3, 2), "p99": round(cuts[98] * 1e3, 2), "max": round(max(seconds) * 1e3, 1)}


def measure(url: str, workers: int, options: argparse.Namespace) -> dict[str, Any]:
    client = redis.Redis.from_url(url)
    client.config_set("maxclients", 3 * workers + 1_500)
    rate = min(options.rate, options.busy * workers * options.engines / options.check)
    with Fleet(url, workers, rate, options) as fleet:
        time.sleep(options.settle)
        idle = _measured(client, fleet, options.seconds / 2)
        fleet.say("load")
        time.sleep(options.settle)
        loaded = _measured(client, fleet, options.seconds)
    client.flushall()
    return {
        "workers": workers,
        "engines": workers * options.engines,
        "trainers": options.trainers,
        "gateways": options.gateways,
        "offered_per_s": round(rate),
        "idle": idle,
        "loaded": loaded,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=10_000)
    parser.add_argument("--sweep", type=int, nargs="+", help="several numbers of workers, one after the other")
    parser.add_argument("--engines", type=int, default=1, help="of each worker")
    parser.add_argument("--trainers", type=int, default=50)
    parser.add_argument("--gateways", type=int, default=4)
    parser.add_argument("--batch", type=int, default=256, help="jobs in a batch")
    parser.add_argument("--check", type=float, default=20.0, help="mean time of a check, seconds")
    parser.add_argument("--busy", type=float, default=0.8, help="part of what the workers could do that is offered")
    parser.add_argument(
        "--rate", type=float, default=100.0, help="most jobs a second (50 trainers, 1,024 / 12 min: 71)"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="of each measurement under load; half of it idle")
    parser.add_argument("--settle", type=float, default=10.0, help="seconds before each measurement")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--url", help="a server of your own, which is flushed (default: an embedded one)")
    options = parser.parse_args()
    _raise_file_limit()
    with contextlib.ExitStack() as stack:
        url = options.url or stack.enter_context(EmbeddedServer()).url
        for workers in options.sweep or [options.workers]:
            json.dump(measure(url, workers, options), sys.stdout)
            print(flush=True)


if __name__ == "__main__":
    main()
