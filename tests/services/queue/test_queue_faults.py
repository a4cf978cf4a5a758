"""The queue when its server is killed, paused, full or forgetful."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from conftest import BINARIES, SERVERS
from queue_helpers import done, eventually, jobs, keys_of
from redis.asyncio import Redis

from services.queue import (
    Delivery,
    JobQueue,
    QueueFull,
    QueueUnavailable,
    ReapReport,
    Submission,
    SubmitReport,
    connect,
)
from services.queue.server import EmbeddedServer


@pytest.fixture(params=SERVERS)
def own_server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(binary=BINARIES[request.param]) as server:
        yield server


@pytest.fixture
async def own_redis(own_server: EmbeddedServer) -> AsyncIterator[Redis]:
    async with connect(own_server.url) as client:
        yield client


def kill(server: EmbeddedServer) -> None:
    os.kill(server.pid, signal.SIGKILL)
    ends = time.monotonic() + 5
    while server.alive():
        assert time.monotonic() < ends
        time.sleep(0.01)


async def every_call_fails(queue: JobQueue) -> None:
    calls = [
        queue.submit("s", jobs("z"), home="h"),
        queue.claim("w", 1, 0.1),
        queue.stats(),
        queue.reap(),
        queue.unsubscribe("s"),
        queue.delivered("s"),
        queue.adopt("s", "h"),
        queue.announce("w", b"", 1),
        queue.workers(),
    ]
    for call in calls:
        with pytest.raises(QueueUnavailable):
            await call


async def test_after_a_crash_that_forgot_everything_a_gateway_notices_and_submits_again(
    own_server: EmbeddedServer, own_redis: Redis
) -> None:
    queue = JobQueue(own_redis)
    heard: list[Delivery] = []

    async def gateway() -> None:
        async for batch in queue.deliveries("h"):
            heard.extend(batch)

    async def worker_stops(tokens: list[str]) -> None:
        async for batch in queue.cancellations("w"):
            tokens.extend(batch)

    stopped: list[str] = []
    listeners = [asyncio.ensure_future(gateway()), asyncio.ensure_future(worker_stops(stopped))]
    await queue.submit("s", jobs("a", "b", "c"), home="h")
    first, second = await queue.claim("w", 2, 0)
    await queue.complete(done([first]))
    epoch = (await queue.stats()).epoch
    blocked = asyncio.ensure_future(queue.claim("idle", 5, 30))
    assert keys_of(await blocked) == ["c"]
    blocked = asyncio.ensure_future(queue.claim("idle", 5, 30))
    await asyncio.sleep(0.1)

    kill(own_server)
    with pytest.raises(QueueUnavailable):
        await blocked
    await every_call_fails(queue)
    own_server.restart()

    assert (await queue.stats()).epoch != epoch
    assert await queue.heartbeat("w", [second]) == {second.token}
    assert await queue.complete(done([second])) == [False]
    undelivered = [key for key in "abc" if key not in {delivery.key for delivery in heard}]
    assert undelivered == ["b", "c"]
    await queue.submit("s", jobs(*undelivered), home="h")
    running, last = await queue.claim("w", 5, 0)
    await queue.complete(done([running]))

    async def all_heard() -> bool:
        return [delivery.key for delivery in heard] == ["a", "b"]

    await eventually(all_heard)
    await queue.unsubscribe("s")

    async def stop_heard() -> bool:
        return stopped == [last.token]

    await eventually(stop_heard)
    for listener in listeners:
        listener.cancel()
    await asyncio.gather(*listeners, return_exceptions=True)


@pytest.mark.parametrize("kind", SERVERS)
async def test_with_persistence_a_crash_loses_nothing_that_was_written_out(kind: str, tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path / "with a space", persist=True, binary=BINARIES[kind]) as server:
        async with connect(server.url) as client:
            queue = JobQueue(client)
            await queue.submit("s", jobs("a", "b", "c"), home="h")
            first, second = await queue.claim("w", 2, 0)
            await queue.complete(done([first]))
            await asyncio.sleep(2)  # written out every second
            kill(server)
            server.restart()
            with pytest.raises(QueueUnavailable):  # the pooled connection is dead; the next call has a new one
                await queue.stats()
            assert await queue.submit("s", jobs("a", "b", "c"), home="h") == SubmitReport(0, 2, ("a",))
            assert await queue.complete(done([second])) == [True]
            assert [d.key for d in await anext(queue.deliveries("h"))] == ["a", "b"]
            assert keys_of(await queue.claim("w", 5, 0)) == ["c"]


async def test_a_paused_server_is_unavailable_then_goes_on_and_no_live_worker_loses_its_lease(
    own_server: EmbeddedServer, own_redis: Redis
) -> None:
    queue = JobQueue(own_redis, lease_s=0.4, call_limit_s=0.3)
    await queue.submit("s", jobs("a"), home="h")
    claims = await queue.claim("w", 1, 0)
    reader = asyncio.ensure_future(anext(queue.deliveries("h")))
    await asyncio.sleep(0.05)
    os.kill(own_server.pid, signal.SIGSTOP)
    try:
        start = time.monotonic()
        with pytest.raises(QueueUnavailable):
            await queue.heartbeat("w", claims)
        with pytest.raises(QueueUnavailable):
            await queue.stats()
        assert time.monotonic() - start < 1.5
    finally:
        os.kill(own_server.pid, signal.SIGCONT)
    assert await queue.reap() == ReapReport(0, 0, 0)  # although the lease ended meanwhile
    assert await queue.heartbeat("w", claims) == set()
    assert await queue.complete(done(claims)) == [True]
    assert [delivery.key for delivery in await asyncio.wait_for(reader, 5)] == ["a"]


async def test_a_lost_connection_loses_no_delivery_and_no_cancellation(
    own_server: EmbeddedServer, own_redis: Redis
) -> None:
    queue = JobQueue(own_redis)
    heard: list[str] = []
    stopped: list[str] = []

    async def gateway() -> None:
        async for batch in queue.deliveries("h"):
            heard.extend(delivery.key for delivery in batch)

    async def worker() -> None:
        async for batch in queue.cancellations("w"):
            stopped.extend(batch)

    listeners = [asyncio.ensure_future(gateway()), asyncio.ensure_future(worker())]
    tokens = []
    async with connect(own_server.url) as admin:
        for number in range(30):
            await admin.client_kill_filter(_type="normal", skipme=True)
            for attempt in range(3):
                try:
                    await queue.submit("s", jobs(f"done{number}", f"stop{number}"), home="h")
                    break
                except QueueUnavailable:
                    assert attempt < 2
            one, two = await queue.claim("w", 2, 1)
            await queue.complete(done([one]))
            await queue.unsubscribe("s")
            tokens.append(two.token)

    async def all_heard() -> bool:
        return len(heard) >= 30 and len(stopped) >= 30

    await eventually(all_heard)
    for listener in listeners:
        listener.cancel()
    await asyncio.gather(*listeners, return_exceptions=True)
    assert heard == [f"done{number}" for number in range(30)]
    assert stopped == tokens


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_server_without_memory_refuses_submissions_and_serves_all_that_frees_some(kind: str) -> None:
    with EmbeddedServer(maxmemory_mb=20, binary=BINARIES[kind]) as server:
        async with connect(server.url) as client:
            queue = JobQueue(client)
            accepted = 0

            async def submit_until_refused() -> None:
                nonlocal accepted
                while accepted < 100:
                    submissions = [Submission(f"{accepted}-{i}", b"x" * 100_000, 0, 1.0) for i in range(10)]
                    await queue.submit(f"s{accepted}", submissions, home="h")
                    accepted += 1

            with pytest.raises(QueueFull) as caught:
                await submit_until_refused()
            assert caught.value.reason == "memory"
            assert accepted > 2
            assert (await queue.stats()).depth == 10 * accepted
            await client.config_set("maxmemory", 1 << 20)  # far below what is used, so that every growth is refused
            with pytest.raises(QueueFull):
                await queue.submit("s", jobs("small"), home="h")
            claims = await queue.claim("w", 5, 0)
            assert await queue.heartbeat("w", claims) == set()
            await queue.announce("w", b"", 1)
            assert await queue.raise_priority({f"{accepted - 1}-9": 4}) == 1
            assert await queue.complete(done(claims[:3])) == [True] * 3
            await queue.release(claims[3:4])
            for batch in range(accepted):
                await queue.unsubscribe(f"s{batch}")
            assert (await queue.stats()).depth == 0
            assert sum([len(await queue.delivered(f"s{batch}")) for batch in range(accepted)]) == 3
            await client.config_set("maxmemory", 20 << 20)
            assert await queue.submit("s", jobs("small"), home="h") == SubmitReport(1, 0)


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_large_submission_that_meets_the_end_of_memory_leaves_nothing(kind: str) -> None:
    with EmbeddedServer(maxmemory_mb=20, binary=BINARIES[kind]) as server:
        async with connect(server.url) as client:
            queue = JobQueue(client)
            with pytest.raises(QueueFull):
                await queue.submit("s", [Submission(f"k{i}", b"x" * 100_000, 0, 1.0) for i in range(400)], home="h")
            assert (await queue.stats()).depth == 0
            assert await queue.claim("w", 5, 0) == []


async def test_a_server_that_does_not_know_the_scripts_is_taught_them(own_redis: Redis) -> None:
    queue = JobQueue(own_redis)
    await queue.submit("s", jobs("a"), home="h")
    await own_redis.script_flush()
    await queue.submit("s", jobs("b"), home="h")
    assert keys_of(await queue.claim("w", 5, 0)) == ["a", "b"]


async def test_a_server_that_cannot_write_to_its_disk_is_unavailable(own_redis: Redis) -> None:
    queue = JobQueue(own_redis)
    await own_redis.config_set("min-replicas-to-write", 1)  # any refusal to write will do: this one needs no full disk
    with pytest.raises(QueueUnavailable, match="does not serve"):
        await queue.submit("s", jobs("a"), home="h")


async def test_nobody_listens_at_the_address() -> None:
    async with connect("redis://127.0.0.1:1/0") as client:
        with pytest.raises(QueueUnavailable, match="cannot be reached"):
            await JobQueue(client).stats()
