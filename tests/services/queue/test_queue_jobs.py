"""How jobs pass through the queue: submitted, joined, claimed in order, completed, cancelled, given up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from queue_helpers import done, eventually, job, jobs, keys_of, read
from redis.asyncio import Redis

from services.queue import (
    CancelReport,
    Completion,
    JobQueue,
    QueueFull,
    ReapReport,
    Submission,
    SubmitReport,
    connect,
)
from services.queue.server import EmbeddedServer

MakeQueue = Callable[..., JobQueue]
LEASE_S = 0.05


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
        await queue.submit("one", [job("urgent", 1)], home="h")
        assert keys_of(await queue.claim("w", 1, 0)) == ["urgent"]


class TestJoinedTerms:
    async def test_a_joined_job_has_the_highest_priority_and_the_longest_limit(self, queue: JobQueue) -> None:
        await queue.submit("one", [job("other", 3), job("a", 1, 60)], home="h")
        await queue.submit("two", [job("a", 5, 20)], home="h")
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

    async def test_many_expired_leases_are_reaped_in_one_call(self, make_queue: MakeQueue) -> None:
        queue = make_queue(lease_s=LEASE_S)
        await queue.submit("s", jobs(*(f"k{i}" for i in range(250))), home="h")
        assert [len(await queue.claim("w", 128, 0)) for _ in range(2)] == [128, 122]
        await asyncio.sleep(LEASE_S + 0.01)
        assert await queue.reap() == ReapReport(250, 0, 0)


class TestBounds:
    async def test_a_full_queue_takes_nothing_of_a_submission(self, make_queue: MakeQueue) -> None:
        queue = make_queue(max_depth=700)
        await queue.submit("one", jobs(*(f"a{i}" for i in range(300))), home="h")
        with pytest.raises(QueueFull) as caught:
            await queue.submit("two", jobs(*(f"b{i}" for i in range(401))), home="h")
        assert (caught.value.depth, caught.value.limit, caught.value.reason) == (300, 700, "depth")
        assert (await queue.stats()).depth == 300
        assert await queue.unsubscribe("two") == CancelReport(0, 0, 0)
        await queue.submit("two", jobs(*(f"b{i}" for i in range(400))), home="h")
        with pytest.raises(QueueFull):
            await queue.submit("three", jobs("c"), home="h")
        assert await queue.submit("three", jobs("a1", "b399"), home="h") == SubmitReport(0, 2)

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
        kinds = {key.split(b":")[2] for key in seen}
        expected = (
            b"job subs pending results home deliveries cancels waiting queue levels clock leases wake workers worker"
        )
        assert kinds >= set(expected.split())
        assert all(key.startswith(b"lr-test:{expiry}:") for key in seen)
        assert all(0 < ttl <= (200_000 + 3600) * 1000 for ttl in seen.values()), seen


class TestWorkers:
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
