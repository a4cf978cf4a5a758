"""Results reach their subscribers: by home, by name, once each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from queue_helpers import done, eventually, job, jobs, keys_of, read

from services.queue import Completion, JobQueue, SubmitReport

MakeQueue = Callable[..., JobQueue]


class TestDelivery:
    async def test_a_result_reaches_its_subscriber_by_home_and_by_name(self, queue: JobQueue) -> None:
        assert await queue.submit("batch", [job("a", 3, 7.5)], home="gateway") == SubmitReport(1, 0)
        (claim,) = await queue.claim("worker", 4, 0)
        assert (claim.key, claim.payload, claim.attempt, claim.timeout_s, claim.priority) == (
            "a",
            b"payload of a",
            1,
            7.5,
            3,
        )
        assert await queue.complete([Completion(claim, b"\x00\xff result")]) == [True]
        (delivery,) = await read(queue, "gateway", 1)
        assert (delivery.subscriber, delivery.key, delivery.result, delivery.outcome) == (
            "batch",
            "a",
            b"\x00\xff result",
            "done",
        )
        assert await queue.delivered("batch") == {"a": delivery}
        assert (await queue.stats()).running == 0

    async def test_names_may_hold_any_characters(self, queue: JobQueue) -> None:
        subscriber, flow, key = "a b:c\n{d}\x00é", "f 1 2\n:x\x00", "k:{}\n é"
        await queue.submit(subscriber, jobs(key), home="h {} \n", flow=flow)
        await queue.submit("other", jobs(key), home="h", flow="-5:0 0")
        await queue.unsubscribe("other")
        claims = await queue.claim("w\n :", 1, 0)
        assert keys_of(claims) == [key]
        await queue.complete(done(claims))
        assert (await read(queue, "h {} \n", 1))[0].subscriber == subscriber

    async def test_every_subscriber_of_a_joined_job_is_told_once(self, queue: JobQueue) -> None:
        await queue.submit("one", jobs("a"), home="h")
        assert await queue.submit("two", jobs("a", "b"), home="h") == SubmitReport(1, 1)
        claims = await queue.claim("w", 5, 0)
        assert keys_of(claims) == ["a", "b"]
        await queue.submit("three", jobs("a"), home="other")  # while it runs
        await queue.complete(done(claims))
        assert sorted((d.subscriber, d.key) for d in await read(queue, "h", 3)) == [
            ("one", "a"),
            ("two", "a"),
            ("two", "b"),
        ]
        assert [d.subscriber for d in await read(queue, "other", 1)] == ["three"]

    async def test_a_key_twice_in_a_submission_is_one_job_of_the_highest_terms(self, queue: JobQueue) -> None:
        assert await queue.submit("s", [job("a", 1, 9), job("a", 2, 5)], home="h") == SubmitReport(1, 0)
        (claim,) = await queue.claim("w", 5, 0)
        assert (claim.priority, claim.timeout_s) == (2, 9)

    async def test_submitting_again_changes_nothing_and_names_what_is_finished(self, queue: JobQueue) -> None:
        await queue.submit("s", jobs("a", "b", "c"), home="h")
        await queue.complete(done(await queue.claim("w", 1, 0)))
        (running,) = await queue.claim("w", 1, 0)
        assert await queue.submit("s", jobs("a", "b", "c"), home="h") == SubmitReport(0, 2, ("a",))
        await queue.complete(done([running, *await queue.claim("w", 5, 0)]))
        assert sorted(d.key for d in await read(queue, "h", 3)) == ["a", "b", "c"]

    async def test_a_result_is_not_given_to_who_comes_after_it(self, queue: JobQueue) -> None:
        await queue.submit("one", jobs("a"), home="h")
        await queue.complete(done(await queue.claim("w", 1, 0)))
        assert await queue.submit("two", jobs("a"), home="h") == SubmitReport(1, 0)

    async def test_an_unconfirmed_delivery_is_read_again_and_a_confirmed_one_is_not(self, queue: JobQueue) -> None:
        await queue.submit("s", jobs("a"), home="h")
        await queue.complete(done(await queue.claim("w", 1, 0)))
        reader = queue.deliveries("h")
        assert [d.key for d in await anext(reader)] == ["a"]
        await reader.aclose()  # type: ignore[attr-defined]
        assert [d.key for d in await read(queue, "h", 1)] == ["a"]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(queue.deliveries("h")), 0.1)

    async def test_a_new_home_adopts_a_batch(self, queue: JobQueue) -> None:
        await queue.submit("s", jobs("a", "b"), home="dead")
        first, second = await queue.claim("w", 2, 0)
        await queue.complete(done([first]))
        await queue.adopt("s", "alive")
        await queue.complete(done([second]))
        assert set(await queue.delivered("s")) == {"a", "b"}
        assert [d.key for d in await read(queue, "alive", 1)] == ["b"]

    async def test_results_are_kept_for_keep_s(self, make_queue: MakeQueue) -> None:
        queue = make_queue(keep_s=0.1)
        await queue.submit("s", jobs("a"), home="h")
        await queue.complete(done(await queue.claim("w", 1, 0)))
        assert set(await queue.delivered("s")) == {"a"}

        async def gone() -> bool:
            return not await queue.delivered("s")

        await eventually(gone)
