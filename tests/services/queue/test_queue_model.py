"""The queue against a model of it: random calls on a real server, every answer foretold or checked.

A worker's death is made by moving the end of its leases into the past, so that no step depends on the speed of the
machine; short leases in real time are in ``test_queue_jobs.py``.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from services.queue import CancelReport, Claim, Completion, Delivery, JobQueue, ReapReport, Submission, connect
from services.queue.jobs import STEPS
from services.queue.server import EmbeddedServer

T = TypeVar("T")

SUBSCRIBERS = ("s1", "s2", "s3")
HOMES = {"s1": "h1", "s2": "h1", "s3": "h2"}
KEYS = tuple("abcde")
LIMITS_S = (1.0, 5.0, 30.0)

subscribers = st.sampled_from(SUBSCRIBERS)
key_lists = st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True)
priorities = st.integers(-1, 2) | st.sampled_from([-STEPS - 1, STEPS, STEPS + 1])
limits = st.sampled_from(LIMITS_S)
flows = st.sampled_from(["f1", "f2", None])
numbers = itertools.count()


@dataclass
class Terms:
    priority: int
    timeout_s: float
    order: int
    flow: str


@dataclass
class Job:
    seq: int
    payload: bytes
    subscribers: dict[str, Terms] = field(default_factory=dict)
    floor: int = -1024
    attempt: int = 0
    lease: Claim | None = None
    dead: bool = False

    @property
    def line(self) -> tuple[int, str, str]:
        name, best = min(self.subscribers.items(), key=lambda item: (-item[1].priority, item[1].order))
        return max(best.priority, self.floor), best.flow, name

    @property
    def level(self) -> tuple[int, str]:
        return self.line[0] // STEPS, self.line[1]

    @property
    def timeout_s(self) -> float:
        return max(terms.timeout_s for terms in self.subscribers.values())


class Queue(RuleBasedStateMachine):
    """One queue, its subscribers, and workers that hold every claim they ever had."""

    server: EmbeddedServer

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.redis = connect(self.server.url)
        self.name = f"model-{next(numbers)}"
        self.queue = JobQueue(self.redis, name=self.name, lease_s=600)
        self.readers = {home: self.queue.deliveries(home) for home in ("h1", "h2")}
        self.stops = self.queue.cancellations("worker")
        self.counter = itertools.count()
        self.jobs: dict[str, Job] = {}
        self.claims: list[Claim] = []
        self.results: dict[str, dict[str, Delivery]] = {name: {} for name in SUBSCRIBERS}
        self.expected: dict[str, list[Delivery]] = {"h1": [], "h2": []}
        self.cancelled: list[str] = []
        # For each waiting level, how often each other level of its priority was served since it was itself; and so for
        # the lines of a level.
        self.passed: dict[tuple[Any, ...], dict[tuple[Any, ...], int]] = {}

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(call, 10))

    # What callers do

    @rule(name=subscribers, keys=key_lists, priority=priorities, timeout_s=limits, flow=flows)
    def submit(self, name: str, keys: list[str], priority: int, timeout_s: float, flow: str | None) -> None:
        queued, joined, finished = 0, 0, []
        for key in keys:
            if key in self.results[name]:
                finished.append(key)
                continue
            job = self.jobs.get(key)
            if job is None:
                queued += 1
                job = self.jobs[key] = Job(next(self.counter), key.encode() * 3)
            else:
                joined += 1
            job.subscribers[name] = Terms(priority, timeout_s, next(self.counter), flow or name)
        submissions = [Submission(key, key.encode() * 3, priority, timeout_s) for key in keys]
        report = self.run(self.queue.submit(name, submissions, home=HOMES[name], flow=flow))
        assert (report.queued, report.joined, list(report.finished)) == (queued, joined, finished)

    @rule(keys=key_lists, priority=st.integers(1, 4) | st.just(STEPS + 2))
    def raise_priority(self, keys: list[str], priority: int) -> None:
        raised = 0
        for key in keys:
            job = self.jobs.get(key)
            if job is not None and job.lease is None and job.line[0] < priority:
                job.floor = priority
                raised += 1
        assert self.run(self.queue.raise_priority(dict.fromkeys(keys, priority))) == raised

    @rule(name=subscribers, keys=st.none() | key_lists)
    def unsubscribe(self, name: str, keys: list[str] | None) -> None:
        removed, stopped, shared = 0, 0, 0
        for key in keys if keys is not None else KEYS:
            job = self.jobs.get(key)
            if job is None or name not in job.subscribers:
                continue
            del job.subscribers[name]
            if job.subscribers:
                shared += 1
                continue
            del self.jobs[key]
            if job.lease is None:
                removed += 1
            else:
                stopped += 1
                self.cancelled.append(job.lease.token)
        assert self.run(self.queue.unsubscribe(name, keys)) == CancelReport(removed, stopped, shared)

    @rule(limit=st.integers(1, 6))
    def claim(self, limit: int) -> None:
        self.check_claims(self.run(self.queue.claim("worker", limit, 0)), limit)

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), timed_out=st.booleans())
    def complete(self, data: st.DataObject, timed_out: bool) -> None:
        chosen = data.draw(st.lists(st.sampled_from(self.claims), min_size=1, max_size=4, unique_by=lambda c: c.token))
        current = [self.is_current(claim) for claim in chosen]
        for claim, yes in zip(chosen, current, strict=True):
            if yes:
                self.finish(claim, timed_out)
        completions = [Completion(claim, claim.token.encode(), timed_out) for claim in chosen]
        assert self.run(self.queue.complete(completions)) == current

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        if self.is_current(claim):
            job = self.jobs[claim.key]
            job.lease, job.dead, job.attempt = None, False, job.attempt - 1
        self.run(self.queue.release([claim]))

    @precondition(lambda self: self.claims)
    @rule()
    def heartbeat(self) -> None:
        lost = {claim.token for claim in self.claims if not self.is_current(claim)}
        assert self.run(self.queue.heartbeat("worker", self.claims)) == lost
        for job in self.jobs.values():
            job.dead = False

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        """The worker of a claim falls silent for longer than its lease."""
        claim = data.draw(st.sampled_from(self.claims))
        if self.is_current(claim):
            self.jobs[claim.key].dead = True
            self.run(self.redis.zadd(f"{self.queue._root}leases", {claim.key: 1}, xx=True))

    @rule()
    def reap(self) -> None:
        requeued, crashed = 0, 0
        for key, job in list(self.jobs.items()):
            if not job.dead:
                continue
            if job.attempt < 2:
                job.lease, job.dead = None, False
                requeued += 1
            else:
                crashed += 1
                for name in job.subscribers:
                    self.deliver(Delivery(name, key, None, "crashed"))
                del self.jobs[key]
        assert self.run(self.queue.reap()) == ReapReport(requeued, crashed, 0)

    @rule()
    def read_deliveries(self) -> None:
        for home, expected in self.expected.items():
            found: list[Delivery] = []
            while len(found) < len(expected):
                found += self.run(anext(self.readers[home]))  # type: ignore[arg-type]
            assert sorted(found, key=repr) == sorted(expected, key=repr)
            expected.clear()

    @rule()
    def read_cancellations(self) -> None:
        found: list[str] = []
        while len(found) < len(self.cancelled):
            found += self.run(anext(self.stops))  # type: ignore[arg-type]
        assert sorted(found) == sorted(self.cancelled)
        self.cancelled.clear()

    # What must hold

    @invariant()
    def sizes_agree(self) -> None:
        stats = self.run(self.queue.stats())
        waiting = [job for job in self.jobs.values() if job.lease is None]
        assert stats.depth == len(waiting)
        assert stats.running == len(self.jobs) - len(waiting)
        assert stats.overdue == sum(job.dead for job in self.jobs.values())
        assert stats.flows == len({job.level for job in waiting})
        self.forget_levels_that_emptied()

    def teardown(self) -> None:
        try:
            self.finish_everything()
        finally:
            self.run(self.redis.aclose())
            self.loop.close()

    def finish_everything(self) -> None:
        """Nothing is lost: whatever is still wanted can be run, and everyone who waits is told once."""
        wanted = {(name, key) for key, job in self.jobs.items() for name in job.subscribers}
        for claim in [claim for claim in self.claims if self.is_current(claim)]:
            self.finish(claim, timed_out=False)
            assert self.run(self.queue.complete([Completion(claim, claim.token.encode())])) == [True]
        while claims := self.run(self.queue.claim("worker", 3, 0)):
            self.check_claims(claims, 3)
            for claim in claims:
                self.finish(claim, timed_out=False)
            assert all(self.run(self.queue.complete([Completion(c, c.token.encode()) for c in claims])))
        assert not self.jobs
        assert all(key in self.results[name] for name, key in wanted)
        self.read_deliveries()
        for home in self.expected:
            with pytest.raises(asyncio.TimeoutError):
                self.run(asyncio.wait_for(anext(self.readers[home]), 0.005))  # type: ignore[arg-type]
        for name in SUBSCRIBERS:
            assert self.run(self.queue.delivered(name)) == self.results[name]

    # The model

    def is_current(self, claim: Claim) -> bool:
        job = self.jobs.get(claim.key)
        return job is not None and job.lease is not None and job.lease.token == claim.token

    def finish(self, claim: Claim, timed_out: bool) -> None:
        job = self.jobs[claim.key]
        for name, terms in list(job.subscribers.items()):
            if timed_out and terms.timeout_s > claim.timeout_s:
                continue
            del job.subscribers[name]
            self.deliver(Delivery(name, claim.key, claim.token.encode(), "done"))
        if job.subscribers:
            job.lease, job.dead, job.attempt = None, False, 0
        else:
            del self.jobs[claim.key]

    def deliver(self, delivery: Delivery) -> None:
        assert delivery.key not in self.results[delivery.subscriber], "answered twice"
        self.results[delivery.subscriber][delivery.key] = delivery
        self.expected[HOMES[delivery.subscriber]].append(delivery)

    def waiting(self) -> Iterator[tuple[str, Job]]:
        return ((key, job) for key, job in self.jobs.items() if job.lease is None)

    def check_claims(self, claims: list[Claim], limit: int) -> None:
        """In order, with the right terms, as many as there are, a suspect alone."""
        for claim in claims:
            job = self.jobs.get(claim.key)
            assert job is not None, "run although nobody wants it"
            assert job.lease is None, "run twice"
            level = job.level
            assert level[0] == max(other.level[0] for _, other in self.waiting())
            assert job.seq == min(other.seq for _, other in self.waiting() if other.line == job.line)
            self.check_turn(level, {other.level for _, other in self.waiting() if other.level[0] == level[0]})
            lines = {other.line for _, other in self.waiting() if other.level == level}
            assert job.line[0] == max(line[0] for line in lines)
            self.check_turn(job.line, {line for line in lines if line[0] == job.line[0]})
            priority = job.line[0]
            job.attempt += 1
            assert (claim.priority, claim.timeout_s, claim.attempt, claim.payload) == (
                priority,
                job.timeout_s,
                job.attempt,
                job.payload,
            )
            job.lease = claim
            self.claims.append(claim)
        if any(claim.attempt > 1 for claim in claims):
            assert len(claims) == 1
        elif len(claims) < limit:
            # Short only because nothing is left, or because a suspect is next.
            left = [job for _, job in self.waiting()]
            assert not left or (claims and any(job.attempt > 0 for job in left))

    def check_turn(self, served: tuple[Any, ...], peers: set[tuple[Any, ...]]) -> None:
        """Of two that wait for turns of the same kind, none is served more than twice without the other."""
        self.passed.pop(served, None)
        for peer in peers - {served}:
            counts = self.passed.setdefault(peer, {})
            counts[served] = counts.get(served, 0) + 1
            assert counts[served] <= 2, "starved"

    def forget_levels_that_emptied(self) -> None:
        there = {place for _, job in self.waiting() for place in (job.level, job.line)}
        self.passed = {place: counts for place, counts in self.passed.items() if place in there}


def test_the_queue_behaves_as_its_model(server: EmbeddedServer) -> None:
    class OnThisServer(Queue):
        pass

    OnThisServer.server = server
    run_state_machine_as_test(
        OnThisServer,
        settings=settings(
            max_examples=100,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
