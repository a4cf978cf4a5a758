"""Votes kept to audit a reward, each under the key of the caller that it was made for."""

from __future__ import annotations

import asyncio
import hashlib
import lzma
import re
import secrets

from redis.asyncio import Redis

from services.contracts.votes import StageVotes
from services.queue.connection import reach

_ID = re.compile(r"v-[0-9a-f]{24}")
_LIMIT_S = 5.0
_LZMA_PRESET = 1  # its window of 1 MiB finds the view of one replica again in the next one's


def new_id() -> str:
    return f"v-{secrets.token_hex(12)}"


class VoteStore:
    """Records in Redis for `keep_s` seconds. Its methods raise `QueueUnavailable`."""

    def __init__(self, redis: Redis, prefix: str, keep_s: float) -> None:
        self._redis = redis
        self._prefix = prefix
        self._keep_ms = max(1, round(keep_s * 1000))

    async def put(self, owner: str, votes: StageVotes) -> None:
        data = await asyncio.to_thread(lambda: lzma.compress(votes.model_dump_json().encode(), preset=_LZMA_PRESET))
        await reach(self._redis.set(self._key(owner, votes.id), data, px=self._keep_ms), _LIMIT_S)

    async def get(self, owner: str, votes_id: str) -> bytes | None:
        """The JSON of a record of this owner; None when there is none (any more)."""
        if not _ID.fullmatch(votes_id):
            return None
        data = await reach(self._redis.get(self._key(owner, votes_id)), _LIMIT_S)
        return await asyncio.to_thread(lzma.decompress, data) if isinstance(data, bytes) else None

    def _key(self, owner: str, votes_id: str) -> str:
        name = hashlib.sha256(owner.encode()).hexdigest()[:32]
        return f"{self._prefix}:{{votes}}:{name}:{votes_id}"
