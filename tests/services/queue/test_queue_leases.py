"""How a job leaves its worker: cancelled, given back, given up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from queue_helpers import done, jobs, keys_of, read

from services.queue import CancelReport, JobQueue, ReapReport

MakeQueue = Callable[..., JobQueue]
LEASE_S = 0.05


class TestCancellation:
    async def test_waiting_jobs_leave_at_once(self, queue: JobQueue) -> None:
        await queue.submit("s", jobs(*(f"k{i}" for i in range(600))), home="h")
        assert await queue.unsubscribe("s") == CancelReport(600, 0, 0)
        assert await queue.claim("w", 10, 0) == []
        stats = await queue.stats()
        assert (stats.depth, stats.flows, stats.oldest_age_s) == (0, 0, 0)

    async def test_some_keys_can_leave(self, queue: JobQueue) -> None:
        await queue.submit("s", jobs("a", "b", "c"), home="h")
        assert await queue.unsubscribe("s", ["a", "c", "unknown"]) == CancelReport(2, 0, 0)
        assert keys_of(await queue.claim("w", 5, 0)) == ["b"]

    async def test_a_running_check_is_told_to_stop_within_200_ms(self, queue: JobQueue) -> None:
        await queue.submit("s", jobs("a", "b"), home="h")
        claims = await queue.claim("w", 2, 0)
        reader = queue.cancellations("w")
        waiting = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0.05)
        start = time.monotonic()
        assert await queue.unsubscribe("s") == CancelReport(0, 2, 0)
        tokens = await waiting
        assert time.monotonic() - start < 0.2
        if len(tokens) < 2:
            tokens += await anext(reader)
        assert set(tokens) == {claim.token for claim in claims}
        assert await queue.complete(done(claims)) == [False, False]
        assert await queue.heartbeat("w", claims) == {claim.token for claim in claims}
        assert await queue.delivered("s") == {}

    async def test_a_late_cancellation_does_not_name_the_next_run(self, queue: JobQueue) -> None:
        await queue.submit("one", jobs("a"), home="h")
        (old,) = await queue.claim("w", 1, 0)
        await queue.unsubscribe("one")
        await queue.submit("two", jobs("a"), home="h")
        (new,) = await queue.claim("w", 1, 0)
        assert await anext(queue.cancellations("w")) == [old.token]
        assert await queue.heartbeat("w", [old, new]) == {old.token}
        assert await queue.complete(done([old, new])) == [False, True]

    async def test_a_job_goes_on_for_its_other_subscribers(self, queue: JobQueue) -> None:
        await queue.submit("one", jobs("a", "b"), home="h")
        await queue.submit("two", jobs("a", "b"), home="h")
        claims = await queue.claim("w", 1, 0)
        assert await queue.unsubscribe("one") == CancelReport(0, 0, 2)
        claims += await queue.claim("w", 1, 0)
        assert await queue.complete(done(claims)) == [True, True]
        assert {d.subscriber for d in await read(queue, "h", 2)} == {"two"}

    async def test_a_subscription_ends_by_itself(self, queue: JobQueue) -> None:
        await queue.submit("s", jobs("running", "a", "b"), home="h", ttl_s=0.05)
        claims = await queue.claim("w", 1, 0)
        await queue.submit("patient", jobs("b"), home="h")
        await asyncio.sleep(0.06)
        assert await queue.heartbeat("w", claims) == {claims[0].token}
        assert keys_of(await queue.claim("w", 5, 0)) == ["b"]
        assert await queue.complete(done(claims)) == [False]

    async def test_reaping_drops_what_nobody_waits_for_any_more(self, queue: JobQueue) -> None:
        await queue.submit("s", jobs(*(f"k{i}" for i in range(250))), home="h", ttl_s=0.05)
        await asyncio.sleep(0.06)
        assert await queue.reap() == ReapReport(0, 0, 250)
        assert (await queue.stats()).depth == 0


class TestLeases:
    async def test_a_vanished_workers_jobs_come_back_once_and_then_end_as_crashed(self, make_queue: MakeQueue) -> None:
        queue = make_queue(lease_s=LEASE_S)
        await queue.submit("s", jobs("a"), home="h")
        (first,) = await queue.claim("w1", 1, 0)
        await asyncio.sleep(LEASE_S + 0.01)
        assert (await queue.stats()).overdue == 1
        assert await queue.reap() == ReapReport(1, 0, 0)
        (second,) = await queue.claim("w2", 1, 0)
        assert (second.attempt, second.payload) == (2, first.payload)
        assert await queue.complete(done([first])) == [False]
        await asyncio.sleep(LEASE_S + 0.01)
        assert await queue.reap() == ReapReport(0, 1, 0)
        (delivery,) = await read(queue, "h", 1)
        assert (delivery.outcome, delivery.result) == ("crashed", None)
        assert await queue.complete(done([second])) == [False]
        assert await queue.reap() == ReapReport(0, 0, 0)

    async def test_heartbeats_keep_a_lease(self, make_queue: MakeQueue) -> None:
        queue = make_queue(lease_s=0.3)
        await queue.submit("s", jobs("a"), home="h")
        claims = await queue.claim("w", 1, 0)
        for _ in range(5):
            await asyncio.sleep(0.1)
            assert await queue.heartbeat("w", claims) == set()
            assert await queue.reap() == ReapReport(0, 0, 0)
        assert await queue.complete(done(claims)) == [True]

    async def test_a_returned_job_keeps_its_place(self, make_queue: MakeQueue) -> None:
        queue = make_queue(lease_s=LEASE_S)
        await queue.submit("s", jobs("a", "b", "c"), home="h")
        await queue.claim("w", 1, 0)
        await asyncio.sleep(LEASE_S + 0.01)
        await queue.reap()
        assert keys_of(await queue.claim("w", 1, 0)) == ["a"]

    async def test_the_neighbours_of_a_deadly_job_survive_it(self, make_queue: MakeQueue) -> None:
        queue = make_queue(lease_s=LEASE_S)
        await queue.submit("s", jobs("x", "deadly", "y"), home="h")
        assert len(await queue.claim("w1", 3, 0)) == 3  # ... and the worker dies
        await asyncio.sleep(LEASE_S + 0.01)
        await queue.reap()
        await queue.submit("s", jobs("fresh"), home="h")
        for expected in ("x", "deadly", "y", "fresh"):
            claims = await queue.claim("w2", 3, 0)
            assert keys_of(claims) == [expected]
            if expected != "deadly":
                assert await queue.complete(done(claims)) == [True]
        await asyncio.sleep(LEASE_S + 0.01)
        assert await queue.reap() == ReapReport(0, 1, 0)
        outcomes = {key: delivery.outcome for key, delivery in (await queue.delivered("s")).items()}
        assert outcomes == {"x": "done", "deadly": "crashed", "y": "done", "fresh": "done"}

    async def test_released_jobs_wait_again_uncounted(self, queue: JobQueue) -> None:
        await queue.submit("s", jobs("a", "b"), home="h")
        for _ in range(3):
            claims = await queue.claim("w", 1, 0)
            assert (keys_of(claims), claims[0].attempt) == (["a"], 1)
            await queue.release(claims)
        await queue.release(claims)  # stale by now
        assert (await queue.stats()).depth == 2

    async def test_jobs_that_were_tried_are_released_counted(self, queue: JobQueue) -> None:
        await queue.submit("s", jobs("a"), home="h")
        for attempt in (1, 2, 3):
            claims = await queue.claim("w", 1, 0)
            assert claims[0].attempt == attempt
            await queue.release(claims, counted=True)
        assert (await queue.stats()).depth == 1

    async def test_many_expired_leases_are_reaped_in_one_call(self, make_queue: MakeQueue) -> None:
        queue = make_queue(lease_s=LEASE_S)
        await queue.submit("s", jobs(*(f"k{i}" for i in range(250))), home="h")
        assert [len(await queue.claim("w", 128, 0)) for _ in range(2)] == [128, 122]
        await asyncio.sleep(LEASE_S + 0.01)
        assert await queue.reap() == ReapReport(250, 0, 0)
