"""Workers that wait for jobs: woken at once, without polling, whoever dies on the way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from queue_helpers import done, eventually, jobs, keys_of
from redis.asyncio import Redis

from services.queue import Claim, JobQueue, ReapReport, connect
from services.queue.server import EmbeddedServer

MakeQueue = Callable[..., JobQueue]


async def commands(redis: Redis) -> int:
    return int((await redis.info("stats"))["total_commands_processed"])


async def blocked(redis: Redis, count: int) -> None:
    async def enough() -> bool:
        return bool((await redis.info("clients"))["blocked_clients"] >= count)

    await eventually(enough)


async def test_a_waiting_worker_hears_of_a_job_at_once(queue: JobQueue) -> None:
    waiting = asyncio.ensure_future(queue.claim("w", 1, 10))
    await asyncio.sleep(0.1)
    start = time.monotonic()
    await queue.submit("s", jobs("a"), home="h")
    assert keys_of(await waiting) == ["a"]
    assert time.monotonic() - start < 0.2


async def test_a_claim_without_jobs_ends_in_time(queue: JobQueue) -> None:
    start = time.monotonic()
    assert await queue.claim("w", 1, 0.2) == []
    assert 0.15 < time.monotonic() - start < 1
    assert await queue.claim("w", 1, 0) == []


async def test_each_waiting_worker_gets_one_of_many_jobs(queue: JobQueue, redis: Redis) -> None:
    workers = [asyncio.ensure_future(queue.claim(f"w{i}", 1, 10)) for i in range(20)]
    await blocked(redis, 20)
    await queue.submit("s", jobs(*(f"k{i}" for i in range(20))), home="h")
    claimed = [keys_of(claims) for claims in await asyncio.gather(*workers)]
    assert sorted(claimed) == sorted([f"k{i}"] for i in range(20))


async def test_few_jobs_wake_few_workers(queue: JobQueue, redis: Redis) -> None:
    workers = [asyncio.ensure_future(queue.claim(f"w{i}", 1, 10)) for i in range(50)]
    await blocked(redis, 50)
    before = await commands(redis)
    await queue.submit("s", jobs("a", "b"), home="h")
    finished, waiting = await asyncio.wait(workers, timeout=0.3)
    assert len(finished) == 2
    # Scripts count with the commands they call. Fifty woken workers would have run fifty scripts of six or more.
    assert await commands(redis) - before < 120
    for worker in waiting:
        worker.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_idle_workers_and_gateways_cost_nothing(queue: JobQueue, redis: Redis) -> None:
    listeners = [
        *(asyncio.ensure_future(queue.claim(f"w{i}", 1, 30)) for i in range(100)),
        *(asyncio.ensure_future(anext(queue.cancellations(f"w{i}"))) for i in range(100)),  # type: ignore[arg-type]
        *(asyncio.ensure_future(anext(queue.deliveries(f"h{i}"))) for i in range(5)),  # type: ignore[arg-type]
    ]
    await blocked(redis, 205)
    before = await commands(redis)
    await asyncio.sleep(1)
    assert await commands(redis) - before <= 3
    for listener in listeners:
        listener.cancel()
    await asyncio.gather(*listeners, return_exceptions=True)


@pytest.mark.parametrize("rescuer", ["claim", "reap"])
async def test_a_worker_that_dies_between_waking_and_claiming_loses_nothing(
    queue: JobQueue, redis: Redis, rescuer: str
) -> None:
    waiting = asyncio.ensure_future(queue.claim("alive", 1, 10))
    await blocked(redis, 1)
    for name in ("dead", "dead too"):
        assert await queue.claim(name, 1, 0) == []
    await queue.submit("s", jobs("a", "b"), home="h")  # wakes the two, who were idle last
    assert not (await asyncio.wait({waiting}, timeout=0.1))[0]
    if rescuer == "claim":
        assert keys_of(await queue.claim("other", 1, 0)) == ["a"]
    else:
        assert await queue.reap() == ReapReport(0, 0, 0)
    assert keys_of(await asyncio.wait_for(waiting, 2)) == ["b" if rescuer == "claim" else "a"]


async def test_no_tokens_are_left_over_when_nothing_waits(queue: JobQueue) -> None:
    assert await queue.claim("idle", 1, 0) == []
    await queue.submit("s", jobs(*(f"k{i}" for i in range(50))), home="h")
    await queue.claim("w", 40, 0)
    await queue.unsubscribe("s")
    assert await queue.claim("idle", 1, 0) == []
    assert not await queue._wait_for_jobs("idle", 0.05)


async def test_a_worker_that_became_busy_is_not_woken_in_place_of_an_idle_one(queue: JobQueue, redis: Redis) -> None:
    idle = asyncio.ensure_future(queue.claim("idle", 1, 10))
    await blocked(redis, 1)
    assert await queue.claim("busy", 1, 0) == []
    await queue.submit("s", jobs("a"), home="h")
    assert keys_of(await queue.claim("busy", 1, 0)) == ["a"]
    await queue.submit("s", jobs("b"), home="h")
    assert keys_of(await asyncio.wait_for(idle, 2)) == ["b"]


async def test_a_cancelled_claim_gives_back_what_it_had_leased(server: EmbeddedServer, make_queue: MakeQueue) -> None:
    queue = make_queue()
    await queue.submit("s", jobs("a", "b"), home="h")
    claim = asyncio.ensure_future(queue.claim("w", 2, 10))
    await asyncio.sleep(0)  # on its way
    await asyncio.sleep(0)
    claim.cancel()
    with pytest.raises(asyncio.CancelledError):
        await claim
    assert (await queue.stats()).running == 0
    claims = await queue.claim("w", 2, 0)
    assert [(c.key, c.attempt) for c in claims] == [("a", 1), ("b", 1)]


async def test_claims_work_with_a_client_that_limits_its_waits(server: EmbeddedServer) -> None:
    async with connect(server.url, socket_timeout=0.4) as client:
        queue = JobQueue(client, name="short-waits")
        start = time.monotonic()
        assert await queue.claim("w", 1, 0.7) == []
        assert time.monotonic() - start > 0.6


async def test_many_workers_together_run_each_job_once(queue: JobQueue) -> None:
    """500 jobs, 8 workers of different claim sizes, 5 batches that share some keys and one that is cancelled midway."""
    seen: list[str] = []
    running: set[str] = set()
    gone: set[str] = set()

    async def worker(number: int) -> None:
        while True:
            acknowledged = set(gone)
            claims: list[Claim] = await queue.claim(f"w{number}", 1 + number, 0.5)
            if not claims:
                return
            keys = set(keys_of(claims))
            assert not keys & running, "one job in two hands"
            assert not keys & acknowledged, "run after its cancellation was acknowledged"
            running.update(keys)
            await asyncio.sleep(0.001)
            running.difference_update(keys)
            accepted = await queue.complete(done(claims))
            seen.extend(claim.key for claim, yes in zip(claims, accepted, strict=True) if yes)

    async def canceller() -> None:
        await queue.submit("cancelled", jobs(*(f"c{i}" for i in range(300))), home="h")
        await asyncio.sleep(0.03)
        await queue.unsubscribe("cancelled")
        gone.update(f"c{i}" for i in range(300))
        running.difference_update(gone)

    for batch in range(4):
        keys = [f"b{batch}-{i}" for i in range(100)] + [f"shared{i}" for i in range(25)]
        await queue.submit(f"s{batch}", jobs(*keys), home="h")
    await asyncio.gather(canceller(), *(worker(number) for number in range(8)))
    assert len(seen) == len(set(seen))
    for batch in range(4):
        assert len(await queue.delivered(f"s{batch}")) == 125
    assert (await queue.stats()).depth == (await queue.stats()).running == 0
