"""Batches in Redis: what must outlive a gateway process.

Keys, all under the queue's prefix and all with an expiry:
`<prefix>:batch:<owner>:<id>` a batch that the caller can name (an explicit id, or a job);
`<prefix>:home:<home>` the sign of life of a gateway process;
`<prefix>:home:<home>:batches` subscribers whose jobs this process waits for, each with its record's key or nothing;
`<prefix>:homes` every process that ever had one, until its batches are looked after.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from redis.asyncio import Redis

from services.contracts.jobs import JobProgress, JobState
from services.contracts.problems import Problem
from services.queue.connection import reach

ALIVE_MS = 10_000
"""A gateway that has not been heard of for so long is taken for dead."""
_HOMES_S = 7 * 86_400
_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept of a batch.

    `answer` is the JSON of its `ScoreResponse`. `elapsed_s` counts only time in which a gateway held the batch.
    """

    key: str
    id: str
    digest: str
    subscriber: str
    home: str
    durable: bool
    state: JobState
    elapsed_s: float
    progress: JobProgress
    answer: bytes | None
    problem: Problem | None


class Records:
    """The records of one gateway process, which is called `home`."""

    def __init__(self, redis: Redis, *, prefix: str, home: str, keep_s: float) -> None:
        self._redis = redis
        self._prefix = prefix
        self._keep_ms = int(keep_s * 1000)
        self.home = home
        scripts = files("reward_gateway.batches") / "scripts"
        self._open = redis.register_script((scripts / "open.lua").read_text())
        self._take_over = redis.register_script((scripts / "take_over.lua").read_text())
        self._finish = redis.register_script((scripts / "finish.lua").read_text())
        self._forget = redis.register_script((scripts / "forget.lua").read_text())
        self._beat = redis.register_script((scripts / "beat.lua").read_text())

    def key(self, owner: str, batch_id: str) -> str:
        return f"{self._prefix}:batch:{owner}:{batch_id}"

    def owner(self, key: str) -> str:
        """The name of the caller's key in a record's key; it has no colon."""
        return self._parts(key)[0]

    def _batch_id(self, key: str) -> str:
        return self._parts(key)[1]

    def _parts(self, key: str) -> tuple[str, str]:
        owner, _, batch_id = key.removeprefix(f"{self._prefix}:batch:").partition(":")
        return owner, batch_id

    async def open(
        self, key: str, *, digest: str, subscriber: str, request: str | None, candidates: int, lifetime_s: float
    ) -> bool:
        """Create a record; `request` is kept for a batch that must survive its gateway. False: there is one already."""
        progress = JobProgress(candidates=candidates, decided=0, lean=0, elapsed_s=0.0)
        fields: dict[str, str | bytes] = {
            "digest": digest,
            "subscriber": subscriber,
            "home": self.home,
            "durable": "" if request is None else "1",
            "state": JobState.RUNNING.value,
            "elapsed": "0",
            "progress": progress.model_dump_json(),
        }
        if request is not None:
            fields["request"] = await _packed(request)
        lifetime_ms = int(lifetime_s * 1000) + self._keep_ms
        return bool(await self._reach(self._open(keys=[key], args=[lifetime_ms, *_flat(fields)])))

    async def read(self, key: str) -> Record | None:
        names = ("digest", "subscriber", "home", "durable", "state", "elapsed", "progress", "answer", "problem")
        values = await self._reach(self._redis.hmget(key, list(names)))
        if values[0] is None:
            return None
        found = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        answer = found.get("answer")
        problem = found.get("problem")
        return Record(
            key=key,
            id=self._batch_id(key),
            digest=found["digest"].decode(),
            subscriber=found["subscriber"].decode(),
            home=found["home"].decode(),
            durable=found["durable"] == b"1",
            state=JobState(found["state"].decode()),
            elapsed_s=float(found["elapsed"]),
            progress=JobProgress.model_validate_json(found["progress"]),
            answer=None if answer is None else await asyncio.to_thread(zlib.decompress, answer),
            problem=None if problem is None else Problem.model_validate_json(problem),
        )

    async def request(self, key: str) -> str | None:
        """The kept request of a running durable batch."""
        packed = await self._reach(self._redis.hget(key, "request"))
        if packed is None:
            return None
        return (await asyncio.to_thread(zlib.decompress, packed)).decode("utf-8", "surrogatepass")

    async def alive(self, home: str) -> bool:
        return bool(await self._reach(self._redis.exists(self._life(home))))

    async def take_over(self, record: Record) -> bool:
        """Become the home of a running batch whose gateway is gone; False when it is not, or somebody was faster."""
        taken = await self._reach(
            self._take_over(keys=[record.key, self._life(record.home)], args=[record.home, self.home])
        )
        return bool(taken)

    async def finish(
        self,
        key: str,
        state: JobState,
        progress: JobProgress | None = None,
        *,
        answer: bytes | None = None,
        problem: Problem | None = None,
        anywhere: bool = False,
    ) -> bool:
        """End a batch; False when it has ended before, or (unless `anywhere`) is not ours any more."""
        fields: dict[str, str | bytes] = {"state": state.value}
        if progress is not None:
            fields["progress"] = progress.model_dump_json()
        if answer is not None:
            fields["answer"] = await asyncio.to_thread(zlib.compress, answer, 1)
        if problem is not None:
            fields["problem"] = problem.model_dump_json()
        home = "" if anywhere else self.home
        return bool(await self._reach(self._finish(keys=[key], args=[home, self._keep_ms, *_flat(fields)])))

    async def forget(self, key: str) -> None:
        """Remove the record of a batch of ours that runs, so that the same id can be tried again."""
        await self._reach(self._forget(keys=[key], args=[self.home]))

    async def make_durable(self, key: str, request: str) -> None:
        """Keep the request of a batch of ours that runs, so that another gateway can take it over."""
        await self._reach(self._beat(keys=[key], args=[self.home, "durable", "1", "request", await _packed(request)]))

    async def beat(self, running: Mapping[str, JobProgress]) -> tuple[bool, list[str], list[str]]:
        """Show that this process lives, and how far its batches are.

        Returns whether the last sign of life was still there (if not, others took this process for dead), the records
        that have ended or are another's by now, and those that are gone.
        """
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.set(self._life(self.home), "1", px=ALIVE_MS, get=True)
            pipe.sadd(f"{self._prefix}:homes", self.home)
            pipe.expire(f"{self._prefix}:homes", _HOMES_S)
            pipe.expire(self._batches(self.home), _HOMES_S)
            for key, progress in running.items():
                fields = {"elapsed": str(progress.elapsed_s), "progress": progress.model_dump_json()}
                await self._beat(keys=[key], args=[self.home, *_flat(fields)], client=pipe)
            answers = await self._reach(pipe.execute())
        held = dict(zip(running, answers[4:], strict=True))
        ended = [key for key, found in held.items() if found == 0]
        return answers[0] is not None, ended, [key for key, found in held.items() if found < 0]

    async def note(self, subscriber: str, key: str | None) -> None:
        """Remember that this process waits for a subscriber's jobs, so that somebody cancels them if it dies."""
        await self._reach(self._redis.hset(self._batches(self.home), subscriber, key or ""))

    async def unnote(self, subscriber: str) -> None:
        await self._reach(self._redis.hdel(self._batches(self.home), subscriber))

    async def dead_homes(self) -> dict[str, dict[str, str | None]]:
        """Gateways without a sign of life: for each, its subscribers and their records' keys (None: no record)."""
        homes = sorted(await self._reach(self._redis.smembers(f"{self._prefix}:homes")))
        names = [home.decode() for home in homes if home.decode() != self.home]
        if not names:
            return {}
        alive = await self._reach(self._redis.mget([self._life(name) for name in names]))
        dead: dict[str, dict[str, str | None]] = {}
        for name, sign in zip(names, alive, strict=True):
            if sign is None:
                batches = await self._reach(self._redis.hgetall(self._batches(name)))
                dead[name] = {subscriber.decode(): key.decode() or None for subscriber, key in batches.items()}
        return dead

    async def bury(self, home: str) -> None:
        """Everything that a dead gateway left behind is looked after."""
        await self._reach(self._redis.srem(f"{self._prefix}:homes", home))
        await self._reach(self._redis.delete(self._batches(home)))

    async def leave(self) -> None:
        """This process ends: others need not wait for its sign of life to fade."""
        await self._reach(self._redis.delete(self._life(self.home)))

    async def _reach(self, call: Any) -> Any:
        """Raises `QueueUnavailable`. (redis-py types its calls as sync or async, so they pass as `Any`.)"""
        return await reach(call, _LIMIT_S)

    def _life(self, home: str) -> str:
        return f"{self._prefix}:home:{home}"

    def _batches(self, home: str) -> str:
        return f"{self._prefix}:home:{home}:batches"


def _flat(fields: Mapping[str, str | bytes]) -> Sequence[str | bytes]:
    return [part for pair in fields.items() for part in pair]


async def _packed(text: str) -> bytes:
    return await asyncio.to_thread(zlib.compress, text.encode("utf-8", "surrogatepass"), 1)
