"""Reading a stream that one process consumes, through every loss of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from redis.asyncio import Redis

from services.queue.connection import reach
from services.queue.errors import QueueUnavailable

Fields = dict[bytes, bytes]

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 1.0


async def follow(
    redis: Redis, stream: str, *, count: int, block_s: float, limit_s: float
) -> AsyncGenerator[list[Fields], None]:
    """Entries of ``stream``, oldest first, at most ``count`` at a time, as soon as they are there.

    Asking for more deletes the entries handed out last, so the stream holds only what its reader has not dealt with,
    and a reader that starts anew starts with that. The server pushes: nothing is polled, a read is renewed every
    ``block_s`` seconds. A connection that is lost, or silent for ``limit_s`` beyond that, is made again; since
    deleting and reading are one call, and reading starts at the beginning, no entry is left out or read twice.
    """
    handed_out: list[bytes] = []
    pause = _FIRST_PAUSE_S
    while True:
        pipeline = redis.pipeline(transaction=False)
        if handed_out:
            pipeline.xdel(stream, *handed_out)
        pipeline.xread({stream: "0"}, count=count, block=max(1, int(block_s * 1000)))
        try:
            answers = await reach(pipeline.execute(), block_s + limit_s)
        except QueueUnavailable:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
            continue
        pause = _FIRST_PAUSE_S
        entries = _entries(answers[-1])
        handed_out = [identity for identity, _ in entries]
        if entries:
            yield [fields for _, fields in entries]


def _entries(answer: Any) -> list[tuple[bytes, Fields]]:
    """The entries in the answer of XREAD for one stream, which redis-py shapes by protocol and version."""
    if not answer:
        return []
    if isinstance(answer, dict):
        batches = next(iter(answer.values()))
        if batches and isinstance(batches[0], list):
            batches = batches[0]
    else:
        batches = answer[0][1]
    return [(identity, fields) for identity, fields in batches]
