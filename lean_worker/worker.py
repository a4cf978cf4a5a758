"""A Lean worker: takes jobs from the queue, runs them on its engines, tells the queue the outcomes.

One slot runs one check at a time, and slots share one line of taken jobs, so that a slow candidate holds back no other.
A job is in the worker's hands from its claim until the queue has taken the result: all that time its lease is renewed.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import psutil
from pydantic import ValidationError

from lean_worker.backoff import delays
from lean_worker.engines.base import Engine, EngineUnavailable
from lean_worker.outbox import QUEUE_FAULTS, Outbox
from lean_worker.slot import Slot, infrastructure_fault
from services.contracts.lean import CheckTask, EngineIdentity, LeanJob, LeanOutcome, WorkerInfo
from services.contracts.outcomes import LeanStatus
from services.queue import Claim, Completion, JobQueue
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.tracing import span
from services.runtime.within import within

_CLAIM_WAIT_S = 10.0
_UNSTARTED_S = 0.25  # a job taken ahead goes back to the queue when no slot has started it by then
_ANNOUNCE_S = 5.0
_REAP_S = 1.0
_MOST_REAP_S = 60.0
_FLUSH_S = 2.0
_STOP_ENGINES_S = 5.0
_ATTEMPTS = 3  # a job under which so many engines were lost for good goes to no further one


class _Stage(Enum):
    WAITING = 0
    RUNNING = 1
    FINISHED = 2


@dataclass(slots=True, eq=False)
class _Held:
    """A job in our hands."""

    claim: Claim
    task: CheckTask
    trace: str | None
    taken_at: float = field(default_factory=time.monotonic)
    stage: _Stage = _Stage.WAITING
    unwanted_since: float | None = None
    run: asyncio.Task[LeanOutcome] | None = None


async def _check(slot: Slot, held: _Held) -> LeanOutcome:
    key, attempt = held.claim.key, held.claim.attempt
    with span("check", held.trace, key=key, attempt=attempt, slot=slot.index) as opened:
        outcome = await slot.check(held.task)
        opened.set(status=outcome.status.value, reason=outcome.reason.value)
        return outcome


class Worker:
    """Owns the slots and everything that keeps them supplied. `run` works until a `drain` has ended."""

    def __init__(
        self,
        name: str,
        queue: JobQueue,
        engines: Sequence[Engine],
        *,
        headers: Sequence[str] = ("",),
        claim_ahead: int = 1,
        lease_s: float = 10.0,
        drain_s: float = 2.0,
    ) -> None:
        self.name = name
        self.slots = [Slot(index, engine, headers) for index, engine in enumerate(engines)]
        self.queue_answers = False
        self.draining = False
        self._queue = queue
        self._claim_ahead = claim_ahead
        self._lease_s = lease_s
        self._drain_s = drain_s
        self._held: dict[str, _Held] = {}  # by the token of its lease
        self._line: asyncio.PriorityQueue[tuple[int, int, _Held]] = asyncio.PriorityQueue()
        self._turn = itertools.count()
        self._idle = 0
        self._may_claim_ahead = True
        self._room_changed = asyncio.Event()
        self._announce_now = asyncio.Event()
        self._claiming: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._outbox = Outbox(queue, self._forget)
        self._started_at = time.time()
        self._process = psutil.Process()
        self._log = get_logger()

    async def run(self) -> None:
        """Bring up the engines and work until drained. An exception that ends it is a fault of the worker itself."""
        self._claiming = asyncio.create_task(self._claim())
        works = [
            asyncio.create_task(work)
            for work in (
                *(self._serve(slot) for slot in self.slots),
                self._outbox.run(),
                self._heartbeat(),
                self._reap(),
                self._announce(),
                self._give_back_unstarted(),
                self._watch_cancellations(),
            )
        ]
        drained = asyncio.create_task(self._drained.wait())
        try:
            # None of these ends by itself but the claiming, and that only for a drain.
            pending: set[asyncio.Task[Any]] = {drained, self._claiming, *works}
            while not drained.done():
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for work in done:
                    if not (self.draining and work is self._claiming):
                        work.result()
        finally:
            tasks = (drained, self._claiming, *works)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._stop_engines()

    async def drain(self) -> None:
        """Take no more jobs, let running checks end within the grace, give the others back, then let `run` return."""
        if self.draining:
            return
        self.draining = True
        if self._claiming is not None:
            self._claiming.cancel()  # what it had just taken, it gives back
            await asyncio.wait({self._claiming})
        with contextlib.suppress(*QUEUE_FAULTS):
            await self._queue.announce(self.name, b"", 0)  # withdraws us
        self._log.info("draining", running=len(self._at(_Stage.RUNNING)), waiting=len(self._at(_Stage.WAITING)))
        self._give_back(self._at(_Stage.WAITING), "drain")
        runs = [held.run for held in self._at(_Stage.RUNNING) if held.run is not None]
        if runs:
            await asyncio.wait(runs, timeout=self._drain_s)
        self._give_back(self._at(_Stage.RUNNING), "drain")
        with contextlib.suppress(asyncio.TimeoutError):
            async with within(_FLUSH_S):
                await self._outbox.flushed()
        self._drained.set()

    # Slots

    async def _serve(self, slot: Slot) -> None:
        """Keep one slot up and busy."""
        while True:
            if not slot.ready:
                await slot.bring_up()
                self._log.info("slot_ready", slot=slot.index, identity=slot.engine.identity.model_dump())
                self._announce_now.set()
            held = await self._next(slot)
            if held is None:
                self._log.warning("engine_lost", slot=slot.index)
                slot.ready = False
                self._announce_now.set()
                continue
            held.stage = _Stage.RUNNING
            held.run = run = asyncio.create_task(_check(slot, held))
            self._room_changed.set()
            try:
                await asyncio.wait({run})
            finally:
                if not run.done():  # we are stopped ourselves
                    run.cancel()
                    await asyncio.wait({run})
            self._finish(held, run, slot)
            await slot.settle()
            self._may_claim_ahead = True
            if not slot.ready:
                self._announce_now.set()

    async def _next(self, slot: Slot) -> _Held | None:
        """The next job in line that is still wanted, or None when the slot has lost its engine before one came."""
        lost = asyncio.create_task(slot.engine.lost())
        try:
            while True:
                held = await self._first_of_line(lost)
                if held is None or held.stage is _Stage.WAITING:
                    return held
        finally:
            lost.cancel()

    async def _first_of_line(self, lost: asyncio.Task[None]) -> _Held | None:
        self._idle += 1
        self._room_changed.set()
        getting = asyncio.create_task(self._line.get())
        try:
            await asyncio.wait({getting, lost}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._idle -= 1
            if not getting.done():
                getting.cancel()
        return getting.result()[2] if getting.done() else None

    def _finish(self, held: _Held, run: asyncio.Task[LeanOutcome], slot: Slot) -> None:
        if run.cancelled() and held.stage is not _Stage.RUNNING:
            if held.unwanted_since is not None:
                metrics.CHECKS_CANCELLED.inc()
                metrics.CANCEL_SECONDS.observe(time.monotonic() - held.unwanted_since)
            return
        error = EngineUnavailable("it broke off by itself") if run.cancelled() else run.exception()
        if isinstance(error, EngineUnavailable):
            slot.ready = False
            if held.stage is not _Stage.RUNNING:
                return
            if held.claim.attempt < _ATTEMPTS:
                self._give_back([held], "engine", counted=True)
                return
            outcome = infrastructure_fault(f"{held.claim.attempt} engines were lost while it was tried: {error}")
        elif error is not None:  # a fault in our own code: no verdict, and an engine of unknown state is not used again
            self._log.error("check_failed", key=held.claim.key, slot=slot.index, exc_info=error)
            slot.ready = False
            outcome = infrastructure_fault(f"the worker failed: {type(error).__name__}")
        else:
            outcome = run.result()
        if held.stage is _Stage.RUNNING:  # else it ended in the moment in which it became unwanted
            held.stage = _Stage.FINISHED
            self._send(held.claim, outcome, slot.engine.identity)

    def _send(self, claim: Claim, outcome: LeanOutcome, identity: EngineIdentity | None) -> None:
        self._log.debug("check_ended", key=claim.key, status=outcome.status.value, reason=outcome.reason.value)
        metrics.CHECKS.labels(outcome.status.value, outcome.reason.value).inc()
        metrics.CHECK_SECONDS.labels(outcome.status.value).observe(outcome.elapsed_s)
        signed = outcome.model_copy(update={"worker": self.name, "identity": identity})
        result = signed.model_dump_json().encode()
        self._outbox.complete(Completion(claim, result, timed_out=outcome.status is LeanStatus.TIMEOUT))

    # Jobs in our hands

    def _at(self, stage: _Stage) -> list[_Held]:
        return [held for held in self._held.values() if held.stage is stage]

    def _accept(self, claim: Claim) -> None:
        metrics.CLAIMS.inc()
        try:
            job = LeanJob.model_validate_json(claim.payload)
        except ValidationError as error:
            self._log.error("payload_unreadable", key=claim.key, errors=error.error_count())
            self._send(claim, infrastructure_fault("the job's payload cannot be read by this worker"), None)
            return
        # The limit is that of the most patient subscriber, who may have come after the payload was written.
        held = _Held(claim, job.task.model_copy(update={"timeout_s": claim.timeout_s}), job.trace)
        self._held[claim.token] = held
        self._line.put_nowait((-claim.priority, next(self._turn), held))

    def _drop(self, token: str) -> None:
        """Nobody wants this job from us any more: stop it, tell nobody."""
        held = self._held.pop(token, None)
        if held is None or held.stage is _Stage.FINISHED:
            return
        held.stage, was = _Stage.FINISHED, held.stage
        held.unwanted_since = time.monotonic()
        if held.run is not None:
            held.run.cancel()
        if was is _Stage.WAITING:
            self._room_changed.set()

    def _give_back(self, jobs: Sequence[_Held], cause: str, *, counted: bool = False) -> None:
        """Return jobs to the queue, to be checked by another engine; a run under way is stopped first."""
        for held in jobs:
            held.stage = _Stage.FINISHED
            if held.run is not None:
                held.run.cancel()
            metrics.CLAIMS_RELEASED.labels(cause).inc()
        self._outbox.release([held.claim for held in jobs], counted=counted)

    def _forget(self, claim: Claim) -> None:
        self._held.pop(claim.token, None)

    def _room(self) -> int:
        """How many jobs to take now: one for each idle slot and a few ahead, fewer by those that wait here."""
        if not any(slot.ready for slot in self.slots):
            return 0
        ahead = self._claim_ahead if self._may_claim_ahead else 0
        return self._idle + ahead - len(self._at(_Stage.WAITING))

    # The queue

    async def _claim(self) -> None:
        waits = delays(0.1, 5.0)
        while True:
            room = self._room()
            if room <= 0:
                await self._room_changed.wait()
                self._room_changed.clear()
                continue
            with self._asking("claim"):
                for claim in await self._queue.claim(self.name, room, _CLAIM_WAIT_S):
                    self._accept(claim)
                waits = delays(0.1, 5.0)
                continue
            await asyncio.sleep(next(waits))

    async def _watch_cancellations(self) -> None:
        async for tokens in self._queue.cancellations(self.name):
            for token in tokens:
                self._drop(token)

    async def _heartbeat(self) -> None:
        while True:
            await asyncio.sleep(_spread(self._lease_s / 4))
            if not self._held:
                continue
            with self._asking("heartbeat"):
                for token in await self._queue.heartbeat(self.name, [held.claim for held in self._held.values()]):
                    metrics.CLAIMS_LOST.inc()
                    self._drop(token)

    async def _reap(self) -> None:
        """Workers reap together about once a second, however many they are."""
        every_s = _REAP_S
        while True:
            await asyncio.sleep(_spread(every_s))
            with self._asking("reap"):
                report = await self._queue.reap()
                if report.requeued or report.crashed:
                    self._log.warning("leases_expired", requeued=report.requeued, crashed=report.crashed)
                every_s = min(_MOST_REAP_S, _REAP_S * max(1, (await self._queue.stats()).workers))

    async def _give_back_unstarted(self) -> None:
        """While every slot is slow, a job taken ahead would wait here though another worker is idle: give it back."""
        while True:
            await asyncio.sleep(_UNSTARTED_S / 2)
            now = time.monotonic()
            late = [held for held in self._at(_Stage.WAITING) if now - held.taken_at > _UNSTARTED_S]
            if late and self._idle == 0:
                self._may_claim_ahead = False  # until a check ends
                self._give_back(late, "unstarted")

    async def _announce(self) -> None:
        while True:
            if any(slot.started for slot in self.slots) and not self.draining:
                with self._asking("announce"):
                    await self._queue.announce(self.name, self.info().model_dump_json().encode(), 3 * _ANNOUNCE_S)
            with contextlib.suppress(asyncio.TimeoutError):
                async with within(_ANNOUNCE_S):
                    await self._announce_now.wait()
            self._announce_now.clear()

    def info(self) -> WorkerInfo:
        """What this worker says about itself; some slot must have started."""
        first = next(slot for slot in self.slots if slot.started)
        ready = [slot for slot in self.slots if slot.ready]
        sandbox = getattr(first.engine, "sandbox", None)  # only engines that need one have it
        return WorkerInfo(
            worker=self.name,
            identity=first.engine.identity,
            engines=len(self.slots),
            ready=len(ready),
            sandbox=None if sandbox is None else str(sandbox),
            headers=tuple(sorted(set().union(*(slot.warm_headers for slot in ready)))),
            started_at=self._started_at,
            rss_bytes=self._process.memory_info().rss + sum(slot.engine.rss_bytes for slot in self.slots),
            restarts=sum(slot.restarts for slot in self.slots),
        )

    def measure(self) -> None:
        """Set the gauges that nothing else keeps up to date."""
        ready, running = sum(slot.ready for slot in self.slots), len(self._at(_Stage.RUNNING))
        for state, count in (("busy", running), ("idle", max(0, ready - running)), ("down", len(self.slots) - ready)):
            metrics.SLOTS.labels(state).set(count)
        tiers = Counter(str(getattr(slot.engine, "sandbox", "wasm")) for slot in self.slots if slot.started)
        for tier, count in tiers.items():
            metrics.SANDBOX.labels(tier).set(count)
        for slot in self.slots:
            metrics.ENGINE_RSS.labels(str(slot.index)).set(slot.engine.rss_bytes)

    @contextlib.contextmanager
    def _asking(self, call: str) -> Iterator[None]:
        """Swallow a fault of the queue: counted, logged, and to be tried again by whoever asks."""
        try:
            yield
            self.queue_answers = True
        except QUEUE_FAULTS as error:
            self.queue_answers = False
            metrics.QUEUE_ERRORS.labels(call).inc()
            self._log.warning("queue_unavailable", call=call, error=str(error))

    async def _stop_engines(self) -> None:
        stops = [asyncio.create_task(slot.stop()) for slot in self.slots]
        _, late = await asyncio.wait(stops, timeout=_STOP_ENGINES_S)
        for stop in late:
            stop.cancel()


def _spread(seconds: float) -> float:
    """So that workers which started together do not stay in step."""
    return seconds * random.uniform(0.75, 1.25)
