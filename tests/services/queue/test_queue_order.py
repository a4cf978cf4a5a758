"""Who is served first: priorities, fair turns, and the terms of joined jobs."""

from __future__ import annotations

from queue_helpers import done, job, jobs, keys_of, read

from services.queue import CancelReport, Completion, JobQueue
from services.queue.jobs import STEPS
from services.queue.scripts import source


class TestOrder:
    async def test_higher_priority_first_then_first_come(self, queue: JobQueue) -> None:
        await queue.submit("s", [job("low", -2), job("a"), job("b"), job("high", 1000)], home="h")
        assert keys_of(await queue.claim("w", 10, 0)) == ["high", "a", "b", "low"]

    async def test_batches_of_one_priority_take_turns(self, queue: JobQueue) -> None:
        await queue.submit("big", jobs(*(f"big{i}" for i in range(6))), home="h")
        await queue.submit("small", jobs(*(f"small{i}" for i in range(3))), home="h")
        order = keys_of(await queue.claim("w", 20, 0))
        assert [key for key in order if key.startswith("big")] == [f"big{i}" for i in range(6)]
        assert [key for key in order if key.startswith("small")] == [f"small{i}" for i in range(3)]
        assert {key[:3] for key in order[:2]} == {key[:3] for key in order[2:4]} == {"big", "sma"}
        assert all(key.startswith("big") for key in order[6:])

    async def test_a_flow_is_served_as_one_whatever_its_batches(self, queue: JobQueue) -> None:
        await queue.submit("x1", jobs(*(f"x1-{i}" for i in range(4))), home="h", flow="x")
        await queue.submit("x2", jobs(*(f"x2-{i}" for i in range(4))), home="h", flow="x")
        await queue.submit("y", jobs(*(f"y-{i}" for i in range(4))), home="h", flow="y")
        assert sum(key.startswith("y") for key in keys_of(await queue.claim("w", 8, 0))) == 4

    async def test_a_flow_of_ten_batches_gets_as_much_as_a_flow_of_one(self, queue: JobQueue) -> None:
        for batch in range(10):
            await queue.submit(f"x{batch}", jobs(*(f"x{batch}-{i}" for i in range(20))), home="h", flow="x")
        await queue.submit("y", jobs(*(f"y-{i}" for i in range(50))), home="h", flow="y")
        order = keys_of(await queue.claim("w", 100, 0))
        assert sum(key.startswith("y") for key in order) == 50
        # ... and the ten share what their flow gets.
        served = [sum(key.startswith(f"x{batch}-") for key in order) for batch in range(10)]
        assert sum(served) == 50
        assert max(served) - min(served) <= 2

    async def test_many_small_batches_of_one_flow_do_not_overtake_another_flow(self, queue: JobQueue) -> None:
        await queue.submit("y", jobs(*(f"y-{i}" for i in range(40))), home="h", flow="y")
        order = []
        for i in range(40):  # each turn finds a new batch of x, which never had a turn
            await queue.submit(f"x{i}", jobs(f"x-{i}a", f"x-{i}b"), home="h", flow="x")
            order += keys_of(await queue.claim("w", 1, 0))
        assert 19 <= sum(key.startswith("y") for key in order) <= 21

    async def test_a_small_batch_of_a_flow_does_not_wait_for_its_large_one(self, queue: JobQueue) -> None:
        await queue.submit("large", jobs(*(f"l{i}" for i in range(100))), home="h", flow="x")
        await queue.claim("w", 50, 0)
        await queue.submit("small", jobs("s0", "s1"), home="h", flow="x")
        assert {"s0", "s1"} <= set(keys_of(await queue.claim("w", 5, 0)))

    async def test_within_a_band_a_priority_orders_only_what_its_own_flow_wants(self, queue: JobQueue) -> None:
        await queue.submit("x", [job(f"x{i}", i % STEPS) for i in range(2 * STEPS)], home="h", flow="x")
        await queue.submit("y", jobs(*(f"y{i}" for i in range(2 * STEPS))), home="h", flow="y")
        claims = await queue.claim("w", 2 * STEPS, 0)
        assert sum(claim.key.startswith("y") for claim in claims) == STEPS
        own = [claim.priority for claim in claims if claim.key.startswith("x")]
        assert own == sorted(own, reverse=True)
        assert own[0] == STEPS - 1

    async def test_a_raise_within_the_band_does_not_cost_another_flow_its_turn(self, queue: JobQueue) -> None:
        await queue.submit("x", jobs(*(f"x{i}" for i in range(10))), home="h", flow="x")
        await queue.submit("y", jobs(*(f"y{i}" for i in range(10))), home="h", flow="y")
        await queue.raise_priority({f"x{i}": STEPS - 1 for i in range(10)})
        assert sum(key.startswith("y") for key in keys_of(await queue.claim("w", 10, 0))) == 5
        await queue.raise_priority({f"x{i}": STEPS for i in range(10)})
        assert all(key.startswith("x") for key in keys_of(await queue.claim("w", 5, 0)))

    def test_the_scripts_count_bands_as_the_client_does(self) -> None:
        assert f"local STEPS = {STEPS} " in source("claim")[0]

    async def test_who_sends_one_job_at_a_time_cannot_starve_a_batch(self, queue: JobQueue) -> None:
        await queue.submit("batch", jobs(*(f"b{i}" for i in range(10))), home="h", flow="z")
        order = []
        for i in range(10):
            await queue.submit(f"single{i}", jobs(f"a{i}"), home="h", flow="a")
            order += keys_of(await queue.claim("w", 1, 0))
        assert 4 <= sum(key.startswith("b") for key in order) <= 6

    async def test_cancelled_jobs_cost_their_flow_nothing(self, queue: JobQueue) -> None:
        await queue.submit("given-up", jobs(*(f"x{i}" for i in range(300))), home="h", flow="x")
        await queue.unsubscribe("given-up")
        await queue.submit("other", jobs(*(f"y{i}" for i in range(10))), home="h", flow="y")
        await queue.submit("again", jobs(*(f"z{i}" for i in range(10))), home="h", flow="x")
        assert sum(key.startswith("z") for key in keys_of(await queue.claim("w", 10, 0))) == 5

    async def test_raising_moves_waiting_jobs_up_and_never_down(self, queue: JobQueue) -> None:
        await queue.submit("s", jobs("a", "b", "c"), home="h")
        (running,) = await queue.claim("w", 1, 0)
        assert await queue.raise_priority({"a": 9, "b": -5, "c": 9, "unknown": 9}) == 1
        claims = await queue.claim("w", 5, 0)
        assert [(claim.key, claim.priority) for claim in claims] == [("c", 9), ("b", 0)]
        assert await queue.complete(done([running])) == [True]

    async def test_a_batch_of_one_with_priority_overtakes_a_large_one(self, queue: JobQueue) -> None:
        await queue.submit("large", jobs(*(f"l{i}" for i in range(1024))), home="h")
        await queue.submit("one", [job("urgent", STEPS)], home="h")
        assert keys_of(await queue.claim("w", 1, 0)) == ["urgent"]


class TestJoinedTerms:
    async def test_a_joined_job_has_the_highest_priority_and_the_longest_limit(self, queue: JobQueue) -> None:
        await queue.submit("one", [job("other", 3), job("a", 1, 60)], home="h", flow="f")
        await queue.submit("two", [job("a", 5, 20)], home="h", flow="f")
        first, _ = await queue.claim("w", 2, 0)
        assert (first.key, first.priority, first.timeout_s) == ("a", 5, 60)

    async def test_terms_fall_back_when_their_subscriber_leaves(self, queue: JobQueue) -> None:
        await queue.submit("one", [job("a", 1, 20), job("other", 3)], home="h")
        await queue.submit("two", [job("a", 5, 60)], home="h")
        assert await queue.unsubscribe("two", ["a"]) == CancelReport(0, 0, 1)
        first, second = await queue.claim("w", 2, 0)
        assert (first.key, second.key, second.priority, second.timeout_s) == ("other", "a", 1, 20)

    async def test_a_raise_stays_when_subscribers_leave(self, queue: JobQueue) -> None:
        await queue.submit("one", jobs("a"), home="h")
        await queue.submit("two", [job("a", 5)], home="h")
        await queue.raise_priority({"a": 7})
        await queue.unsubscribe("two")
        (claim,) = await queue.claim("w", 2, 0)
        assert claim.priority == 7

    async def test_a_raise_stays_when_the_job_comes_back(self, queue: JobQueue) -> None:
        await queue.submit("one", jobs("a"), home="h")
        await queue.raise_priority({"a": 7})
        await queue.release(await queue.claim("w", 1, 0))
        (claim,) = await queue.claim("w", 1, 0)
        assert claim.priority == 7

    async def test_a_timeout_answers_only_who_did_not_want_longer(self, queue: JobQueue) -> None:
        await queue.submit("short", [job("a", 0, 1)], home="h")
        (claim,) = await queue.claim("w", 1, 0)
        await queue.submit("long", [job("a", 0, 60)], home="h")
        assert await queue.complete([Completion(claim, b"timeout", timed_out=True)]) == [True]
        assert [d.subscriber for d in await read(queue, "h", 1)] == ["short"]
        (again,) = await queue.claim("w", 1, 0)
        assert (again.timeout_s, again.attempt) == (60, 1)
        assert await queue.complete([Completion(again, b"timeout", timed_out=True)]) == [True]
        assert [d.subscriber for d in await read(queue, "h", 1)] == ["long"]

    async def test_a_result_that_is_no_timeout_answers_everyone(self, queue: JobQueue) -> None:
        await queue.submit("short", [job("a", 0, 1)], home="h")
        claims = await queue.claim("w", 1, 0)
        await queue.submit("long", [job("a", 0, 60)], home="h")
        await queue.complete(done(claims))
        assert {d.subscriber for d in await read(queue, "h", 2)} == {"short", "long"}
