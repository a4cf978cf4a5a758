"""Verdicts kept between batches."""

from __future__ import annotations

import asyncio

import pytest
from redis.asyncio import Redis

from services.queue import QueueUnavailable, connect
from services.queue.cache import VerdictCache
from services.queue.server import EmbeddedServer


async def test_what_was_put_is_found_and_the_rest_is_not(redis: Redis) -> None:
    cache = VerdictCache(redis, "cache-1")
    values = {f"key {i}": bytes([i % 256, 0, 255]) for i in range(2500)}
    await cache.put_many(values)
    assert await cache.get_many([*values, "unknown"]) == values
    assert await cache.get_many([]) == {}
    await cache.put_many({})


async def test_verdicts_expire(redis: Redis) -> None:
    cache = VerdictCache(redis, "cache-2", ttl_s=0.05)
    await cache.put_many({"a": b"1"})
    assert await cache.get_many(["a"]) == {"a": b"1"}
    await asyncio.sleep(0.07)
    assert await cache.get_many(["a"]) == {}


async def test_prefixes_do_not_meet(redis: Redis) -> None:
    await VerdictCache(redis, "cache-3").put_many({"a": b"1"})
    assert await VerdictCache(redis, "cache-4").get_many(["a"]) == {}


async def test_a_full_or_absent_server_is_unavailable() -> None:
    with EmbeddedServer(maxmemory_mb=10) as server:
        async with connect(server.url) as client:
            cache = VerdictCache(client, "cache")
            await client.config_set("maxmemory", 1)
            with pytest.raises(QueueUnavailable, match="memory"):
                await cache.put_many({"a": b"1"})
    async with connect(server.url) as client:
        with pytest.raises(QueueUnavailable):
            await VerdictCache(client, "cache").get_many(["a"])
