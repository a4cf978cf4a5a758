"""Real servers for the queue's tests: Valkey from its wheel and, where it is on the PATH, ``redis-server``."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from redis.asyncio import Redis

from services.queue import JobQueue, connect
from services.queue.server import EmbeddedServer

BINARIES = {"valkey": None, "redis-server": shutil.which("redis-server")}
SERVERS = [name for name, binary in BINARIES.items() if name == "valkey" or binary]

_numbers = itertools.count()


@pytest.fixture(scope="session", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    """One server of each kind, shared by all tests; each test has a queue of its own on it."""
    with EmbeddedServer(binary=BINARIES[request.param]) as running:
        yield running


@pytest.fixture
async def redis(server: EmbeddedServer) -> AsyncIterator[Redis]:
    async with connect(server.url) as client:
        yield client


@pytest.fixture
def make_queue(redis: Redis) -> Callable[..., JobQueue]:
    """Makes queues; those of one test share its name, as processes that serve one queue do."""
    name = f"test-{next(_numbers)}"
    return lambda **options: JobQueue(redis, **{"name": name, **options})


@pytest.fixture
def queue(make_queue: Callable[..., JobQueue]) -> JobQueue:
    return make_queue()
