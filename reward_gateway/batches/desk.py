"""The desk between batches and the queue: asks Lean, passes answers on, takes questions back."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from pydantic import ValidationError
from redis.exceptions import RedisError

from reward_gateway.batches.keys import verdict_key
from reward_gateway.batches.prepare import Prepared
from reward_gateway.batches.state import BatchState
from reward_gateway.batches.workers import Fleet
from reward_gateway.pace import Pace
from services.contracts.lean import LeanOutcome
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.queue.cache import VerdictCache
from services.queue.errors import QueueError, QueueUnavailable
from services.queue.jobs import Delivery, QueueStats, Submission
from services.queue.queue import JobQueue
from services.runtime import metrics
from services.runtime.logging import get_logger

_WATCH_S = 1.0
_FLEET_S = 0.001  # for each worker
_SMOOTHING = 0.2
_RESTART_GRACE_S = 15.0

_CRASHED = LeanOutcome(
    status=LeanStatus.CRASHED,
    verdict=Verdict.UNKNOWN,
    reason=Reason.INFRASTRUCTURE,
    detail="the workers that ran the check vanished",
)
_UNREADABLE = LeanOutcome(
    status=LeanStatus.CRASHED,
    verdict=Verdict.UNKNOWN,
    reason=Reason.INFRASTRUCTURE,
    detail="the worker's answer could not be read",
)


class Asker(Protocol):
    """Who is told Lean's answers: a batch, or the lane that labels predictions."""

    received_at: float

    @property
    def ttl_s(self) -> float: ...

    @property
    def flow(self) -> str | None: ...

    @property
    def share(self) -> float: ...

    def receive(self, key: str, outcome: LeanOutcome, at_s: float) -> bool: ...

    def checked(self, key: str, outcome: LeanOutcome) -> None: ...

    def unanswered(self) -> list[Submission]: ...


class LeanDesk:
    """One for each gateway process. `watch` and `deliver` run as tasks for the life of the process.

    `stats` is at most about a second old, `fleet` too but where there are thousands of workers; `reachable` says
    whether the queue answered then. `drain_rate` is how many checks all workers complete a second, smoothed.
    """

    def __init__(self, queue: JobQueue, cache: VerdictCache | None, home: str) -> None:
        self._queue = queue
        self._cache = cache
        self._home = home
        self._askers: dict[str, Asker] = {}
        self._passing_on = asyncio.Lock()
        self._ready_at = self._fleet_at = -math.inf
        self.fleet = Fleet()
        self.stats: QueueStats | None = None
        self.reachable = False
        self.drain_rate = 0.0

    @property
    def lean_present(self) -> bool:
        """A warm engine is there, or was there a moment ago and its worker still is.

        Engines are thrown away after a timeout or a crash, which hostile candidates bring about: that must not look
        like an outage.
        """
        recently = time.monotonic() - self._ready_at < _RESTART_GRACE_S
        return self.reachable and bool(self.fleet.ready or (self.fleet.workers and recently))

    def open(self, subscriber: str, asker: Asker) -> None:
        """From now on answers for `subscriber` go to `asker`."""
        self._askers[subscriber] = asker

    def close(self, subscriber: str) -> None:
        """Answers that come later change nothing any more."""
        self._askers.pop(subscriber, None)

    async def settled(self) -> None:
        """Wait until the answers that have been received are passed on, so that none of them comes too late."""
        async with self._passing_on:
            pass

    async def ask(self, subscriber: str, state: BatchState, prepared: Sequence[Prepared]) -> None:
        """Answer from the cache what is known, and queue the rest.

        Raises:
            QueueFull: none of the rest was queued.
            QueueUnavailable: some of it may have been queued.
            LeanMissing: no worker is there to check it.
        """
        asked = await self._answer_from_cache(state, prepared)
        if not asked:
            return
        if not self.lean_present:
            await self.look()
            if not self.lean_present:
                raise LeanMissing
        await self.submit(subscriber, state, state.submissions(asked))

    async def raise_priority(self, changes: Mapping[str, int]) -> None:
        """Move waiting checks forward; a queue that cannot be reached leaves them where they are."""
        try:
            metrics.PRIORITIES_RAISED.inc(await self._queue.raise_priority(changes))
        except QueueUnavailable as error:
            get_logger().warning("priorities_not_raised", checks=len(changes), error=str(error))

    async def withdraw(self, subscriber: str) -> None:
        """Cancel what a subscriber still waits for. A queue that cannot be reached is left to those who reap."""
        try:
            await self._queue.unsubscribe(subscriber)
        except QueueUnavailable as error:
            get_logger().warning("withdraw_failed", subscriber=subscriber, error=str(error))

    async def adopt(self, subscriber: str, asker: Asker) -> None:
        """Take over the answers of a subscriber of another gateway, those that came before included."""
        self.open(subscriber, asker)
        await self._queue.adopt(subscriber, self._home)
        await self._collect(subscriber, asker)

    async def resync(self) -> None:
        """Ask again for everything unanswered: the server lost its memory, or others took this process for dead."""
        for subscriber, asker in list(self._askers.items()):
            again = asker.unanswered()
            if again:
                get_logger().warning("batch_asked_again", subscriber=subscriber, jobs=len(again))
                await self.submit(subscriber, asker, again)

    async def look(self) -> None:
        """Refresh `fleet`, `stats` and `reachable` now; never raises."""
        try:
            stats = await self._queue.stats()
            if self._fleet_is_old(stats.workers):
                self.fleet = Fleet.parse(await self._queue.workers())
                self._fleet_at = time.monotonic()
        except (QueueUnavailable, RedisError) as error:
            if self.reachable:
                get_logger().warning("queue_unavailable", error=str(error))
            self.reachable = False
            self.stats = None
            metrics.QUEUE_REACHABLE.set(0)
            return
        self.reachable = True
        self.stats = stats
        if self.fleet.ready:
            self._ready_at = time.monotonic()
        metrics.QUEUE_DEPTH.set(stats.depth)
        metrics.QUEUE_OLDEST_AGE.set(stats.oldest_age_s)
        metrics.QUEUE_RUNNING.set(stats.running)
        metrics.QUEUE_REACHABLE.set(1)
        metrics.LEAN_ENGINES.set(self.fleet.ready)
        metrics.LEAN_IDENTITIES.set(len(self.fleet.identities))

    def _fleet_is_old(self, workers: int) -> bool:
        """Every announcement is read and parsed, so for thousands of workers not each second, unless it matters now."""
        if not self.fleet.ready or not workers:
            return True
        return time.monotonic() - self._fleet_at >= len(self.fleet.workers) * _FLEET_S

    async def watch(self) -> None:
        """Look every second, reap leases, and ask again when the server has lost its memory."""
        epoch = self.stats.epoch if self.stats else None
        done, counted_at = self.stats.done if self.stats else 0, time.monotonic()
        while True:
            await asyncio.sleep(_WATCH_S)
            await self.look()
            if self.stats is None:
                continue
            now = time.monotonic()
            if self.stats.depth or self.stats.running:  # an idle queue says nothing of how fast it drains
                rate = max(0, self.stats.done - done) / (now - counted_at)
                self.drain_rate += _SMOOTHING * (rate - self.drain_rate) if self.drain_rate else rate
            done, counted_at = self.stats.done, now
            try:
                await self._queue.reap()
                if epoch not in (None, self.stats.epoch):
                    await self.resync()
                epoch = self.stats.epoch
            except QueueError as error:
                get_logger().warning("queue_watch_failed", error=str(error))

    async def deliver(self) -> None:
        """Pass deliveries on to their batches as they come."""
        pace = Pace()
        async for deliveries in self._queue.deliveries(self._home):
            at = time.monotonic()
            fresh: dict[str, bytes] = {}
            async with self._passing_on:
                for delivery in deliveries:
                    asker = self._askers.get(delivery.subscriber)
                    if asker is not None:
                        self._pass_on(asker, delivery, at, fresh)
                        await pace.rest()
            await self._remember(fresh)

    def _pass_on(self, asker: Asker, delivery: Delivery, at: float, fresh: dict[str, bytes]) -> None:
        outcome = _outcome(delivery)
        if asker.receive(delivery.key, outcome, at - asker.received_at):
            asker.checked(delivery.key, outcome)
        if (
            outcome.status is LeanStatus.OK
            and outcome.verdict is not Verdict.UNKNOWN
            and outcome.identity is not None
            and delivery.result is not None
        ):
            fresh[verdict_key(delivery.key, outcome.identity)] = delivery.result

    async def _remember(self, fresh: dict[str, bytes]) -> None:
        if self._cache is None or not fresh:
            return
        try:
            await self._cache.put_many(fresh)
        except QueueUnavailable as error:
            get_logger().warning("verdicts_not_cached", verdicts=len(fresh), error=str(error))

    async def _answer_from_cache(self, state: BatchState, prepared: Sequence[Prepared]) -> list[Prepared]:
        """Answer what the cache holds; the rest is returned. A cache that does not answer holds nothing."""
        identity = self.fleet.identity
        if self._cache is None or identity is None:
            return list(prepared)
        keys = {p.key: verdict_key(p.key, identity) for p in prepared}
        try:
            found = await self._cache.get_many(list(keys.values()))
        except QueueUnavailable:
            return list(prepared)
        at = time.monotonic() - state.received_at
        rest = []
        for p in prepared:
            known = found.get(keys[p.key])
            outcome = None if known is None else _parsed(known)
            if outcome is None or outcome.identity != identity:
                rest.append(p)
                continue
            state.cached.add(p.key)
            state.receive(p.key, outcome, at)
        return rest

    async def submit(self, subscriber: str, asker: Asker, submissions: Sequence[Submission]) -> None:
        """Queue jobs for a subscriber that was opened. Raises `QueueFull`, `QueueUnavailable`."""
        report = await self._queue.submit(
            subscriber, submissions, home=self._home, flow=asker.flow, ttl_s=asker.ttl_s, share=asker.share
        )
        if report.finished:  # this subscriber was answered before: by a gateway that is gone, or before an outage
            await self._collect(subscriber, asker)

    async def _collect(self, subscriber: str, asker: Asker) -> None:
        kept = await self._queue.delivered(subscriber)
        at, fresh = time.monotonic(), dict[str, bytes]()
        for delivery in kept.values():
            self._pass_on(asker, delivery, at, fresh)
        await self._remember(fresh)


class LeanMissing(Exception):
    """No Lean worker with a warm engine announces itself."""


def _outcome(delivery: Delivery) -> LeanOutcome:
    if delivery.result is None:
        return _CRASHED
    outcome = _parsed(delivery.result)
    if outcome is None:
        get_logger().error("lean_outcome_unreadable", key=delivery.key, size=len(delivery.result))
        return _UNREADABLE
    return outcome


def _parsed(result: bytes) -> LeanOutcome | None:
    try:
        return LeanOutcome.model_validate_json(result)
    except ValidationError:
        return None
