"""Jobs on a Redis-protocol server: waiting, leased, cancelled, delivered.

How a job lives: ``submit`` queues it or joins it to one of the same key; ``claim`` leases it to a worker for
``lease_s``, renewed by ``heartbeat``; ``complete`` tells every subscriber once, by the stream of the subscriber's home
and by its kept results. A lease that ends without a heartbeat is found by ``reap``: the job waits again in its old
place and, after ``max_attempts``, ends as ``crashed``. ``unsubscribe`` takes a waiting job away before it returns and
tells a running one's worker to stop. All times are the server's.

Decisions:

- A job's priority is always the highest of its present subscribers', or the one that it was raised to, if higher; a
  raise is a fact about the job and stays whoever leaves. It is charged to the flow of the subscriber who asked for
  that priority first. Its time limit is the longest of its present subscribers', taken when it is claimed; for those
  who join later see ``Completion.timed_out``.
- Nothing is delivered for a stale token. A job that was cancelled, or that another worker has, is not touched.
- A subscriber hears of each key once. Only two things can repeat a delivery: the server lost its last writes (restart
  from an older state), or results are read through ``delivered`` as well.
- State is in ``scripts/_shared.lua``; every change is one script, hence atomic. Large calls go in chunks of at most 128
  jobs or 4 MiB, so that nobody else waits longer than some milliseconds.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from services.queue import scripts
from services.queue.arguments import (
    CHUNK_JOBS,
    completion_arguments,
    in_chunks,
    lease_arguments,
    merged,
    milliseconds,
    read_claims,
    read_delivery,
    submission_arguments,
)
from services.queue.connection import out_of_memory, reach
from services.queue.errors import QueueFull, QueueUnavailable
from services.queue.jobs import (
    CancelReport,
    Claim,
    Completion,
    Delivery,
    QueueStats,
    ReapReport,
    Submission,
    SubmitReport,
)
from services.queue.streams import Fields, follow
from services.runtime import metrics

# Goes up when the scripts change what their keys hold: during an upgrade old and new processes then have a queue each,
# instead of misreading one.
LAYOUT = 3
_REAP_JOBS = 100
_SCAN_RESULTS = 500
# A blocked call is renewed this often, which is how a silently dead connection is found.
_BLOCK_S = 20.0
_SHORTEST_BLOCK_S = 0.01
_DAY_S = 86_400.0


class JobQueue:
    """One named queue. Made for each process, used by all its tasks.

    Parameters:
      redis: a client from ``connect`` (bytes in and out).
      name, prefix: every key starts with ``prefix:{name}:``, then the version of the scripts' layout.
      lease_s: how long a worker may be silent. Workers should send heartbeats at least three times in it.
      keep_s: how long results stay readable after the last of them arrived.
      max_depth: bound on the waiting jobs; ``submit`` raises ``QueueFull`` beyond it.
      max_attempts: after so many vanished workers a job ends as ``crashed``.
      call_limit_s: without an answer for so long the server counts as unavailable.

    Every method raises ``QueueUnavailable`` when the server cannot be reached or cannot serve, except ``deliveries``
    and ``cancellations``, which try again for ever.
    """

    def __init__(
        self,
        redis: Redis,
        *,
        name: str = "lean",
        prefix: str = "lean-reward",
        lease_s: float = 10.0,
        keep_s: float = 3600.0,
        max_depth: int = 200_000,
        max_attempts: int = 2,
        call_limit_s: float = 5.0,
    ) -> None:
        if "{" in prefix or "{" in name or "}" in prefix or "}" in name:
            raise ValueError("prefix and name must not contain braces: they mark the keys' hash tag")
        options = redis.connection_pool.connection_kwargs
        if options.get("decode_responses"):
            raise ValueError("the queue needs a client with decode_responses=False")
        self._redis = redis
        self._root = f"{prefix}:{{{name}}}:{LAYOUT}:"
        self._lease_s = lease_s
        self._lease_ms = milliseconds(lease_s)
        self._keep_ms = milliseconds(keep_s)
        self._max_depth = max_depth
        self._max_attempts = max_attempts
        self._call_limit_s = call_limit_s
        socket_timeout = options.get("socket_timeout")
        self._block_s = _BLOCK_S if socket_timeout is None else min(_BLOCK_S, 0.5 * socket_timeout)
        self._reaps_from = 0.0

    # Gateways

    async def submit(
        self,
        subscriber: str,
        submissions: Sequence[Submission],
        *,
        home: str,
        flow: str | None = None,
        ttl_s: float = _DAY_S,
        share: float = 1.0,
    ) -> SubmitReport:
        """Want jobs, for ``subscriber``, to be told to ``home``; all of them or none.

        ``flow`` is who the jobs are charged to when turns are shared out (default: the subscriber); its subscribers
        share its turns. ``ttl_s``: nobody waits for them any longer than this. ``share``: the part of ``max_depth``
        that this submission may fill, so that others find room when it finds none. May be repeated: what is known is
        joined, its terms become the new ones.

        Raises ``QueueFull``. After ``QueueUnavailable``, or when the call is cancelled, a part may have been accepted:
        submit again or unsubscribe.
        """
        unique = merged(submissions)
        calls = list(in_chunks(unique.values(), lambda submission: len(submission.payload)))
        limit, name = max(1, int(self._max_depth * share)), secrets.token_hex(8)
        head = (subscriber, home, flow or subscriber, milliseconds(ttl_s), self._keep_ms, limit, name)
        queued = joined = 0
        finished: list[str] = []
        left = len(unique)
        for number, chunk in enumerate(calls):
            left -= len(chunk)
            try:
                answer = await self._run("submit", *head, left, *submission_arguments(chunk))
            except ResponseError as error:
                if not out_of_memory(error):
                    raise
                for earlier in calls[:number]:
                    await self.unsubscribe(subscriber, [submission.key for submission in earlier])
                raise QueueFull((await self.stats()).depth, limit, "memory") from error
            if answer[0] < 0:
                raise QueueFull(answer[1], limit, excess=answer[2])
            queued += answer[0]
            joined += answer[1]
            finished += [key.decode() for key in answer[2:]]
        return SubmitReport(queued, joined, tuple(finished))

    async def raise_priority(self, changes: Mapping[str, int]) -> int:
        """Raise waiting jobs, by key, to at least a priority; answers how many changed. Running jobs are left alone."""
        raised = 0
        for chunk in in_chunks(changes.items()):
            raised += await self._run("raise", self._keep_ms, *(value for change in chunk for value in change))
        return raised

    async def unsubscribe(self, subscriber: str, keys: Sequence[str] | None = None) -> CancelReport:
        """Stop wanting ``keys``, or all that the subscriber still waits for.

        When it returns, none of the jobs that waited for this subscriber alone will ever run, no result of a running
        one will be delivered to it, and workers that run one for nobody else have been sent a cancellation.
        """
        head = (subscriber, self._keep_ms, CHUNK_JOBS)
        totals = [0, 0, 0]

        def add(answer: Sequence[int]) -> int:
            for place in range(3):
                totals[place] += answer[place]
            return answer[3]

        if keys is None:
            while add(await self._run("unsubscribe", *head)):
                pass
        else:
            for chunk in in_chunks(keys):
                add(await self._run("unsubscribe", *head, *chunk))
        return CancelReport(*totals)

    async def deliveries(self, home: str) -> AsyncIterator[list[Delivery]]:
        """Results for the subscribers of a home, pushed as they come. For one reader a home.

        Asking for more confirms what was handed out; a new reader of the same home starts with what was not confirmed.
        Never raises ``QueueUnavailable``: it connects again and loses nothing.
        """
        async with aclosing(self._follow(f"{self._root}deliveries:{home}")) as batches:
            async for entries in batches:
                yield [read_delivery(entry[b"s"].decode(), entry[b"k"].decode(), entry[b"e"]) for entry in entries]

    async def delivered(self, subscriber: str) -> dict[str, Delivery]:
        """All kept results of a subscriber by key, those pushed to a home too."""
        results: dict[str, Delivery] = {}
        cursor: int | bytes | str = 0
        while True:
            cursor, part = await self._reach(
                self._redis.hscan(f"{self._root}results:{subscriber}", cursor=int(cursor), count=_SCAN_RESULTS)
            )
            for raw, ending in part.items():
                key = raw.decode()
                results[key] = read_delivery(subscriber, key, ending)
            if not int(cursor):
                return results

    async def adopt(self, subscriber: str, home: str) -> None:
        """Send a subscriber's results to another home from now on.

        Read ``delivered`` after it for what came before; a result that comes in between is in both. A subscriber
        that nobody knows (any more) is ignored.
        """
        await self._reach(self._redis.set(f"{self._root}home:{subscriber}", home, xx=True, keepttl=True))

    # Workers

    async def claim(self, worker: str, limit: int, wait_s: float) -> list[Claim]:
        """Lease up to ``limit`` jobs (at most 128), waiting up to ``wait_s`` seconds for the first, without polling.

        A job whose last worker vanished comes alone. Claim no more than can start soon: a job that was claimed cannot
        be overtaken. When the call is cancelled, what it had leased is released.
        """
        ends = time.monotonic() + wait_s
        while True:
            depth, claims = await self._claim_now(worker, min(limit, CHUNK_JOBS))
            if claims:
                return claims
            if depth:
                continue  # All that it came across was unwanted.
            left = ends - time.monotonic()
            if left <= 0:
                return []
            woken = await self._wait_for_jobs(worker, min(left, self._block_s))
            if not woken and time.monotonic() >= ends:
                return []

    async def heartbeat(self, worker: str, claims: Sequence[Claim]) -> set[str]:
        """Renew leases; answers the tokens whose job is no longer this worker's, or that nobody wants: stop those."""
        lost: set[str] = set()
        for chunk in in_chunks(claims):
            answer = await self._run("heartbeat", self._lease_ms, *lease_arguments(chunk))
            lost.update(token.decode() for token in answer)
        return lost

    async def complete(self, completions: Sequence[Completion]) -> list[bool]:
        """Deliver results; False for each whose token is stale, of which nothing was delivered."""
        accepted: list[bool] = []
        for chunk in in_chunks(completions, lambda completion: len(completion.result)):
            answer = await self._run("complete", self._keep_ms, *completion_arguments(chunk))
            accepted += [bool(value) for value in answer]
        return accepted

    async def release(self, claims: Sequence[Claim], *, counted: bool = False) -> None:
        """Give jobs back: they wait again in their old place. `counted`: they were tried, and the attempt counts."""
        for chunk in in_chunks(claims):
            await self._run("release", self._keep_ms, int(counted), *lease_arguments(chunk))

    async def cancellations(self, worker: str) -> AsyncIterator[list[str]]:
        """Tokens of this worker's leases that nobody wants any more, pushed as they come. For one reader a worker.

        ``heartbeat`` tells the same, later. Never raises ``QueueUnavailable``: it connects again and loses nothing.
        """
        async with aclosing(self._follow(f"{self._root}cancels:{worker}")) as batches:
            async for entries in batches:
                yield [entry[b"t"].decode() for entry in entries]

    async def announce(self, worker: str, info: bytes, ttl_s: float) -> None:
        """Be listed by ``workers`` for ``ttl_s`` seconds with ``info``; 0 withdraws."""
        await self._run("announce", worker, info, milliseconds(ttl_s) if ttl_s > 0 else 0)

    # Both

    async def reap(self) -> ReapReport:
        """Deal with leases that ended. To be called about once a second by any process, by all of them at no harm.

        A process that found the server unavailable leaves leases alone for one ``lease_s``: while the server was away
        no worker could renew its own.
        """
        totals = [0, 0, 0]
        leases_too = int(time.monotonic() >= self._reaps_from)
        more = True
        while more:
            *counts, more = await self._run(
                "reap", self._keep_ms, self._max_attempts, _REAP_JOBS, leases_too, self._lease_ms
            )
            totals = [total + count for total, count in zip(totals, counts, strict=True)]
        for fate, count in zip(("requeued", "crashed", "expired"), totals, strict=True):
            metrics.LEASES_EXPIRED.labels(fate).inc(count)
        return ReapReport(*totals)

    async def stats(self) -> QueueStats:
        depth, age_ms, running, overdue, flows, workers, done, run_id = await self._run("stats")
        return QueueStats(depth, age_ms / 1000, running, overdue, flows, workers, done, run_id.decode())

    async def workers(self) -> dict[str, bytes]:
        """Announced workers and what each said."""
        names = await self._reach(self._redis.zrange(f"{self._root}workers", 0, -1))
        found: dict[str, bytes] = {}
        for chunk in in_chunks([name.decode() for name in names]):
            infos = await self._reach(self._redis.mget([f"{self._root}worker:{name}" for name in chunk]))
            found.update({name: info for name, info in zip(chunk, infos, strict=True) if info is not None})
        return found

    # The server

    async def _claim_now(self, worker: str, limit: int) -> tuple[int, list[Claim]]:
        """Depth left and the claims. Claims whose task is cancelled while the answer is on the way are released."""
        call = asyncio.ensure_future(
            self._run("claim", worker, limit, self._lease_ms, self._keep_ms, f"{secrets.token_hex(8)}-")
        )
        try:
            answer = await asyncio.shield(call)
        except asyncio.CancelledError:
            await asyncio.wait({call})
            if not call.cancelled() and call.exception() is None:
                await self.release(read_claims(call.result()))
            raise
        return answer[0], read_claims(answer)

    async def _wait_for_jobs(self, worker: str, wait_s: float) -> bool:
        """Wait for the token that says that something waits since the worker found nothing."""
        wait_s = max(wait_s, _SHORTEST_BLOCK_S)
        call = self._redis.blpop([f"{self._root}wake:{worker}"], timeout=wait_s)
        return bool(await self._reach(call, beyond_s=wait_s))

    def _follow(self, stream: str) -> AsyncGenerator[list[Fields], None]:
        return follow(self._redis, stream, count=CHUNK_JOBS, block_s=self._block_s, limit_s=self._call_limit_s)

    async def _run(self, script: str, *arguments: str | bytes | int | float) -> Any:
        return await self._reach(scripts.run(self._redis, script, self._root, arguments))

    async def _reach(self, call: Any, beyond_s: float = 0.0) -> Any:
        try:
            return await reach(call, self._call_limit_s + beyond_s)
        except QueueUnavailable:
            self._reaps_from = time.monotonic() + self._lease_s
            raise
