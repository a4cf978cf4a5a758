"""Verdicts kept between batches.

What may be kept is the caller's decision (only Lean's valid and invalid); the key holds all that a verdict depends on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from services.queue.connection import out_of_memory, reach
from services.queue.errors import QueueUnavailable

_CHUNK = 1_000


class VerdictCache:
    """Bytes by key, each kept for ``ttl_s`` seconds after it was put, all under ``prefix:{verdicts}:``.

    Both methods raise ``QueueUnavailable`` when the server cannot be reached or has no memory left; a caller can go on
    without.
    """

    def __init__(self, redis: Redis, prefix: str = "lean-reward", ttl_s: float = 86_400.0, call_limit_s: float = 5.0):
        self._redis = redis
        self._root = f"{prefix}:{{verdicts}}:"
        self._ttl_ms = max(1, round(ttl_s * 1000))
        self._call_limit_s = call_limit_s

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The kept values of those keys that have one."""
        found: dict[str, bytes] = {}
        for chunk in _chunks(keys):
            values = await reach(self._redis.mget([self._root + key for key in chunk]), self._call_limit_s)
            found.update({key: value for key, value in zip(chunk, values, strict=True) if isinstance(value, bytes)})
        return found

    async def put_many(self, values: Mapping[str, bytes]) -> None:
        for chunk in _chunks(list(values)):
            pipeline = self._redis.pipeline(transaction=False)
            for key in chunk:
                pipeline.set(self._root + key, values[key], px=self._ttl_ms)
            try:
                await reach(pipeline.execute(), self._call_limit_s)
            except ResponseError as error:
                if out_of_memory(error):
                    raise QueueUnavailable("the verdict cache's server is out of memory") from error
                raise


def _chunks(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), _CHUNK):
        yield keys[start : start + _CHUNK]
