"""Pairs of verdicts in Redis: shared by all gateways, bounded, and the programs behind them for training.

Keys, both streams under the queue's prefix, both bounded and with an expiry:
`<prefix>:pairs` an entry for each batch or audit, `p` its pairs as JSON; every gateway reads it into its own window;
`<prefix>:labels` an entry for each program with both verdicts, `l` a `LabelledProgram` as compressed JSON.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict
from redis.asyncio import Redis

from reward_gateway.quality.pairs import Pair
from services.contracts.outcomes import Reason, Verdict
from services.queue.connection import reach

_LIMIT_S = 5.0
_ENTRIES = 20_000
_READ = 500
_LABELS_S = 30 * 86_400
_CHUNK = 100


class LabelledProgram(BaseModel):
    """A program, Lean's verdict and the prediction: a line of `lean-reward label export`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    code: str
    header: str
    statement: str | None
    verdict: Verdict
    reason: Reason
    toolchain: str | None
    elapsed_s: float
    predicted: Verdict
    gate: float | None
    model: str
    problems: str
    audited: bool
    at: float


class PairRecords:
    """The two streams. Its methods raise `QueueUnavailable`."""

    def __init__(self, redis: Redis, *, prefix: str, window_s: float, labels_kept: int) -> None:
        self._redis = redis
        self._pairs = f"{prefix}:pairs"
        self._labels = f"{prefix}:labels"
        self._window_s = window_s
        self._labels_kept = labels_kept

    async def add(self, pairs: Sequence[Pair], labels: Sequence[LabelledProgram]) -> None:
        packed = json.dumps([pair[1:] for pair in pairs], separators=(",", ":"))
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.xadd(self._pairs, {"p": packed}, maxlen=_ENTRIES, approximate=True)
            pipe.expire(self._pairs, int(self._window_s) + 60)
            await self._reach(pipe.execute())
        if not self._labels_kept:
            return
        for start in range(0, len(labels), _CHUNK):
            texts = await asyncio.to_thread(_packed, labels[start : start + _CHUNK])
            async with self._redis.pipeline(transaction=False) as pipe:
                for text in texts:
                    pipe.xadd(self._labels, {"l": text}, maxlen=self._labels_kept, approximate=True)
                pipe.expire(self._labels, _LABELS_S)
                await self._reach(pipe.execute())

    async def pairs_after(self, entry: str) -> tuple[str, list[Pair]]:
        """Pairs of entries behind `entry` (an id, or milliseconds), and the id of the last one read."""
        found: list[Pair] = []
        while True:
            entries = await self._reach(self._redis.xrange(self._pairs, min=f"({entry}", count=_READ))
            for identity, fields in entries:
                entry = identity.decode()
                at_s = int(entry.partition("-")[0]) / 1000
                found += [Pair(at_s, *row) for row in json.loads(fields[b"p"])]
            if len(entries) < _READ:
                return entry, found

    async def labels(self) -> AsyncIterator[LabelledProgram]:
        """Every kept program, the oldest first."""
        entry = "0"
        while entries := await self._reach(self._redis.xrange(self._labels, min=f"({entry}", count=_CHUNK)):
            for identity, fields in entries:
                entry = identity.decode()
                yield LabelledProgram.model_validate_json(zlib.decompress(fields[b"l"]))

    async def _reach(self, call: Any) -> Any:
        return await reach(call, _LIMIT_S)


def _packed(labels: Sequence[LabelledProgram]) -> list[bytes]:
    return [zlib.compress(label.model_dump_json().encode("utf-8", "surrogatepass"), 6) for label in labels]
