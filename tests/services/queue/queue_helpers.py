"""Short words for the queue's tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from services.queue import Claim, Completion, Delivery, JobQueue, Submission


def job(key: str, priority: int = 0, timeout_s: float = 10.0) -> Submission:
    return Submission(key, f"payload of {key}".encode(), priority, timeout_s)


def jobs(*keys: str, priority: int = 0) -> list[Submission]:
    return [job(key, priority) for key in keys]


def keys_of(claims: Sequence[Claim]) -> list[str]:
    return [claim.key for claim in claims]


def done(claims: Sequence[Claim], result: bytes = b"ok") -> list[Completion]:
    return [Completion(claim, result) for claim in claims]


async def read(queue: JobQueue, home: str, count: int, within_s: float = 5.0) -> list[Delivery]:
    """The next ``count`` deliveries of a home, confirmed; fails when there are fewer, or more at once."""
    found: list[Delivery] = []
    reader = queue.deliveries(home)
    while len(found) < count:
        found += await asyncio.wait_for(anext(reader), within_s)
    with pytest.raises(asyncio.TimeoutError):
        found += await asyncio.wait_for(anext(reader), 0.05)
    assert len(found) == count
    return found


async def eventually(check: Callable[[], Awaitable[bool]], within_s: float = 5.0) -> None:
    ends = asyncio.get_running_loop().time() + within_s
    while not await check():
        assert asyncio.get_running_loop().time() < ends, "it did not happen in time"
        await asyncio.sleep(0.02)
