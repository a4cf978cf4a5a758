"""A real queue on the embedded server, and workers of scripted engines on it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from redis.asyncio import Redis

from lean_worker.worker import Worker
from services.contracts.lean import CheckTask, LeanJob, LeanOutcome
from services.queue import JobQueue, Submission, connect
from services.queue.server import EmbeddedServer
from tests.lean_worker.scripted import ScriptedEngine

LEASE_S = 1.0
_prefixes = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as running:
        yield running


@dataclass
class Desk:
    """A gateway's side of the queue: submits candidates, collects their outcomes."""

    queue: JobQueue
    redis: Redis
    prefix: str
    url: str
    outcomes: dict[str, LeanOutcome] = field(default_factory=dict)
    crashed: list[str] = field(default_factory=list)

    async def submit(self, *codes: str, priority: int = 0, timeout_s: float = 30.0, subscriber: str = "batch") -> None:
        submissions = []
        for code in codes:
            job = LeanJob(key=code, task=CheckTask(code=code, timeout_s=1.0))
            submissions.append(Submission(code, job.model_dump_json().encode(), priority, timeout_s))
        await self.queue.submit(subscriber, submissions, home="desk")

    async def submit_raw(self, key: str, payload: bytes) -> None:
        await self.queue.submit("batch", [Submission(key, payload, 0, 30.0)], home="desk")

    async def outcome(self, key: str, within_s: float = 10.0) -> LeanOutcome:
        await until(lambda: key in self.outcomes, within_s)
        return self.outcomes[key]

    async def collect(self) -> None:
        async for deliveries in self.queue.deliveries("desk"):
            for delivery in deliveries:
                if delivery.result is None:
                    self.crashed.append(delivery.key)
                else:
                    assert delivery.key not in self.outcomes, "answered twice"
                    self.outcomes[delivery.key] = LeanOutcome.model_validate_json(delivery.result)


async def until(condition: Callable[[], bool], within_s: float = 10.0) -> None:
    loop = asyncio.get_running_loop()
    ends = loop.time() + within_s
    while not condition():
        assert loop.time() < ends, "it did not happen in time"
        await asyncio.sleep(0.005)


def queue_for(redis: Redis, prefix: str, **options: Any) -> JobQueue:
    return JobQueue(redis, prefix=prefix, lease_s=LEASE_S, call_limit_s=1.0, **options)


@pytest.fixture
async def desk(server: EmbeddedServer) -> AsyncIterator[Desk]:
    async with connect(server.url) as redis:
        prefix = f"t{next(_prefixes)}"
        gateway = Desk(queue_for(redis, prefix), redis, prefix, server.url)
        collecting = asyncio.create_task(gateway.collect())
        yield gateway
        collecting.cancel()
        await asyncio.gather(collecting, return_exceptions=True)


@contextlib.asynccontextmanager
async def working(
    desk: Desk,
    *engines: ScriptedEngine,
    name: str = "w",
    ready: int | None = None,
    url: str | None = None,
    **options: Any,
) -> AsyncIterator[Worker]:
    """A running worker; `ready` engines are waited for (default: all). It is drained at the end."""
    async with connect(url or desk.url) as redis:
        worker = Worker(name, queue_for(redis, desk.prefix), engines, **{"lease_s": LEASE_S, "drain_s": 0.2, **options})
        running = asyncio.create_task(worker.run())
        try:
            wanted = len(engines) if ready is None else ready
            await until(lambda: running.done() or sum(slot.ready for slot in worker.slots) >= wanted)
            yield worker
            await worker.drain()
            await asyncio.wait_for(running, 5)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
