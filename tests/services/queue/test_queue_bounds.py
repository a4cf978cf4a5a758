"""What the queue refuses, how large it may be, and what it says about itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from queue_helpers import done, job, jobs
from redis.asyncio import Redis

from services.queue import CancelReport, JobQueue, QueueFull, Submission, SubmitReport, connect
from services.queue.queue import LAYOUT
from services.queue.server import EmbeddedServer

MakeQueue = Callable[..., JobQueue]
LEASE_S = 0.05


class TestBounds:
    async def test_a_full_queue_takes_nothing_of_a_submission(self, make_queue: MakeQueue) -> None:
        queue = make_queue(max_depth=700)
        await queue.submit("one", jobs(*(f"a{i}" for i in range(300))), home="h")
        with pytest.raises(QueueFull) as caught:
            await queue.submit("two", jobs(*(f"b{i}" for i in range(401))), home="h")
        assert (caught.value.depth, caught.value.limit, caught.value.reason) == (300, 700, "depth")
        assert caught.value.excess == 1
        assert (await queue.stats()).depth == 300
        assert await queue.unsubscribe("two") == CancelReport(0, 0, 0)
        await queue.submit("two", jobs(*(f"b{i}" for i in range(400))), home="h")
        with pytest.raises(QueueFull):
            await queue.submit("three", jobs("c"), home="h")
        assert await queue.submit("three", jobs("a1", "b399"), home="h") == SubmitReport(0, 2)

    async def test_who_may_fill_a_part_only_is_refused_first(self, make_queue: MakeQueue) -> None:
        queue = make_queue(max_depth=100)
        await queue.submit("low", jobs(*(f"a{i}" for i in range(60))), home="h", share=0.6)
        with pytest.raises(QueueFull) as caught:
            await queue.submit("low again", jobs("b0", "b1"), home="h", share=0.6)
        assert (caught.value.depth, caught.value.limit, caught.value.excess) == (60, 60, 2)
        await queue.submit("high", jobs(*(f"c{i}" for i in range(40))), home="h")
        with pytest.raises(QueueFull):
            await queue.submit("high again", jobs("d"), home="h")

    async def test_submissions_at_once_never_exceed_the_bound_nor_leave_halves(self, make_queue: MakeQueue) -> None:
        queue = make_queue(max_depth=2500)
        batches = [jobs(*(f"{batch}-{i}" for i in range(1000))) for batch in range(4)]
        outcomes = await asyncio.gather(
            *(queue.submit(f"s{number}", batch, home="h") for number, batch in enumerate(batches)),
            return_exceptions=True,
        )
        accepted = [outcome for outcome in outcomes if isinstance(outcome, SubmitReport)]
        assert all(isinstance(outcome, SubmitReport | QueueFull) for outcome in outcomes)
        assert len(accepted) == 2
        assert (await queue.stats()).depth == 2000

    async def test_65536_jobs_are_submitted_and_cancelled(self, make_queue: MakeQueue) -> None:
        queue = make_queue()
        submissions = [Submission(f"k{i}", b"p", 0, 1.0) for i in range(65_536)]
        assert await queue.submit("s", submissions, home="h") == SubmitReport(65_536, 0)
        assert (await queue.stats()).depth == 65_536
        assert await queue.unsubscribe("s") == CancelReport(65_536, 0, 0)

    async def test_large_payloads_pass(self, queue: JobQueue) -> None:
        submissions = [Submission(f"k{i}", bytes([i]) * (1 << 20), 0, 1.0) for i in range(12)]
        await queue.submit("s", submissions, home="h")
        claims = await queue.claim("w", 12, 0)
        assert [claim.payload for claim in claims] == [submission.payload for submission in submissions]
        await queue.unsubscribe("s")

    @pytest.mark.parametrize(
        ("key", "priority", "timeout_s"),
        [
            ("", 0, 1.0),
            ("k", 1001, 1.0),
            ("k", -1001, 1.0),
            ("k", 0, 0.0),
            ("k", 0, float("inf")),
            ("k", 0, float("nan")),
        ],
    )
    def test_impossible_submissions_are_refused(self, key: str, priority: int, timeout_s: float) -> None:
        with pytest.raises(ValueError, match=r"key|priority|timeout"):
            Submission(key, b"", priority, timeout_s)

    async def test_a_client_that_decodes_is_refused(self, server: EmbeddedServer) -> None:
        async with connect(server.url, decode_responses=True) as client:
            with pytest.raises(ValueError, match="decode_responses"):
                JobQueue(client)

    async def test_every_key_is_under_the_prefix_in_one_slot_and_expires(
        self, redis: Redis, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(name="expiry", prefix="lr-test", lease_s=LEASE_S)
        before = set(await redis.keys("*"))
        seen: dict[bytes, int] = {}

        async def look() -> None:
            for key in set(await redis.keys("*")) - before:
                if not key.startswith(b"lean-reward:"):
                    seen[key] = await redis.pttl(key)

        await queue.claim("idle", 1, 0)
        await queue.claim("idle too", 1, 0)
        await look()
        await queue.submit("one", jobs("a", "b", "c", "d", "e"), home="h")
        await queue.submit("two", [job("a", 4), job("b")], home="h", ttl_s=200_000)
        await look()
        claims = await queue.claim("w", 2, 0)
        await queue.complete(done(claims[:1]))
        await queue.raise_priority({"c": 9})
        await queue.announce("w", b"info", 5)
        await look()
        await asyncio.sleep(LEASE_S + 0.01)
        await queue.reap()
        claims = await queue.claim("w", 1, 0)
        await queue.unsubscribe("one")
        await queue.unsubscribe("two")
        await look()
        root = b"lr-test:{expiry}:%d:" % LAYOUT
        assert [key for key in seen if not key.startswith(root)] == []
        kinds = {key[len(root) :].split(b":")[0] for key in seen}
        expected = (
            b"job subs pending results home deliveries cancels waiting line lines levels clock leases idle wake "
            b"workers worker"
        )
        assert kinds >= set(expected.split())
        assert all(0 < ttl <= (200_000 + 3600) * 1000 for ttl in seen.values()), seen


class TestWorkers:
    async def test_completed_jobs_are_counted_whoever_completes_them(self, make_queue: MakeQueue) -> None:
        one, other = make_queue(), make_queue()
        await one.submit("s", jobs("a", "b", "c"), home="h")
        claims = await one.claim("w", 2, 0)
        await one.complete(done(claims))
        await other.complete(done([*claims, *await other.claim("w2", 1, 0)]))  # the first two are stale by now
        assert (await one.stats()).done == 3

    async def test_announced_workers_are_listed_until_they_withdraw_or_fall_silent(self, queue: JobQueue) -> None:
        await queue.announce("w1", b"one", 5)
        await queue.announce("w2", b"two", 5)
        await queue.announce("w3", b"three", 0.05)
        assert await queue.workers() == {"w1": b"one", "w2": b"two", "w3": b"three"}
        await asyncio.sleep(0.06)
        await queue.announce("w2", b"", 0)
        assert await queue.workers() == {"w1": b"one"}
        assert (await queue.stats()).workers == 1

    async def test_stats_tell_the_age_of_the_oldest_job(self, queue: JobQueue) -> None:
        await queue.submit("s", jobs("a"), home="h")
        await asyncio.sleep(0.05)
        await queue.submit("s", jobs("b"), home="h")
        assert 0.05 <= (await queue.stats()).oldest_age_s < 1
