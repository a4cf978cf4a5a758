"""All batches of this gateway: starting, joining, finding, cancelling, taking over, draining."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterator, Sequence

from reward_gateway.batches.answer import Answer
from reward_gateway.batches.batch import Batch, problem_of, score
from reward_gateway.batches.judges import Judges
from reward_gateway.batches.plan import make_plan
from reward_gateway.batches.prepare import Preparation
from reward_gateway.batches.records import Record, Records
from reward_gateway.bodies.score import ScoreBody, parse_score_body
from reward_gateway.limits.admission import Admission
from reward_gateway.limits.quotas import Quotas
from reward_gateway.studies.recorder import Recorder
from services.contracts.jobs import JobState
from services.contracts.outcomes import Reason
from services.contracts.problems import ProblemCode
from services.contracts.proofs import Mode
from services.queue.errors import QueueUnavailable
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.problems import ProblemError
from services.runtime.settings import GatewaySettings
from services.runtime.tracing import span

_POLL_S = 0.2
_STORE_TRIES, _STORE_PAUSE_S = 60, 1.0
_SHUTDOWN_RETRY_S = 2


class Batches:
    """The book of batches of one gateway process. Its methods raise `ProblemError` when the queue does not answer."""

    def __init__(
        self,
        settings: GatewaySettings,
        judges: Judges,
        records: Records,
        quotas: Quotas,
        recorder: Recorder | None = None,
    ) -> None:
        self._settings = settings
        self._recorder = recorder
        self._quotas = quotas
        self._judges = judges
        self._desk = judges.lean
        self._records = records
        self._admission = Admission(
            max_batches=settings.max_batches, max_candidates=settings.max_in_flight, shared=quotas.several
        )
        self._opening = asyncio.Lock()
        self._side_tasks: set[asyncio.Task[None]] = set()
        self.running: set[Batch] = set()
        self.named: dict[str, Batch] = {}
        self.draining = False

    # Starting and joining

    async def start(
        self, owner: str, body: ScoreBody, text: str, digest: str, *, received_at: float, durable: bool
    ) -> Batch | Record:
        """The batch of a request: a new one, the one it repeats (by id and body), or the record of one elsewhere.

        A `Batch` counts its caller as a waiter until `leave`. Raises `ProblemError`.
        """
        if self.draining:
            raise shutting_down()
        plan = make_plan(body.options, self._settings, owner)
        batch_id = body.options.batch_id or f"b-{secrets.token_hex(8)}"
        named = durable or body.options.batch_id is not None
        batch = Batch(
            id=batch_id,
            subscriber=secrets.token_hex(12),
            digest=digest,
            key=self._records.key(owner, batch_id) if named else None,
            plan=plan,
            candidates=body.candidates,
            received_at=received_at,
            durable=durable,
            predictor=self._judges.predictor(plan.scheduling),
        )
        if batch.key is None:
            self._launch(batch)
            batch.waiters += 1
            return batch
        with self._told():
            async with self._opening:  # so that two requests with one id cannot both find nothing
                found = await self._open(batch, batch.key, text if durable else None)
                if isinstance(found, Batch):
                    found.waiters += 1
        return found

    def start_unnamed(
        self, owner: str, body: ScoreBody, *, received_at: float, given: Sequence[Preparation] | None = None
    ) -> Batch:
        """A batch that nobody can ask for again, for routes that make batches themselves; see `Batch.given`.

        Counts its caller as a waiter until `leave`. Raises `ProblemError`.
        """
        if self.draining:
            raise shutting_down()
        plan = make_plan(body.options, self._settings, owner)
        batch = Batch(
            id=f"b-{secrets.token_hex(8)}",
            subscriber=secrets.token_hex(12),
            digest="",
            key=None,
            plan=plan,
            candidates=body.candidates,
            received_at=received_at,
            durable=False,
            given=given,
            predictor=self._judges.predictor(plan.scheduling),
        )
        self._launch(batch)
        batch.waiters += 1
        return batch

    async def _open(self, batch: Batch, key: str, request: str | None) -> Batch | Record:
        running = self.named.get(key)
        if running is not None and running.lost and running.task is not None:
            await asyncio.wait({running.task})  # its record goes away with it, and the id is free again
            running = self.named.get(key)
        if running is not None:
            _same_body(running.digest, batch.digest)
            if request is not None and not running.durable:
                running.durable = True
                await self._records.make_durable(key, request)
            return running
        for _ in range(3):  # a record may expire between the two calls
            if batch.durable:
                await self._records.note(batch.subscriber, key)  # before the record: a death in between loses nothing
            created = await self._records.open(
                key,
                digest=batch.digest,
                subscriber=batch.subscriber,
                request=request,
                candidates=len(batch.candidates),
                lifetime_s=batch.plan.deadline_s,
            )
            if created:
                try:
                    self._launch(batch)
                except ProblemError:
                    await self._records.forget(key)
                    raise
                return batch
            await self._records.unnote(batch.subscriber)
            record = await self._records.read(key)
            if record is None:
                continue
            _same_body(record.digest, batch.digest)
            if record.state is not JobState.RUNNING or not await self._records.take_over(record):
                return record
            self._adopt(batch, record)
            return batch
        raise QueueUnavailable("the record of the batch comes and goes")

    def _adopt(self, batch: Batch, record: Record) -> None:
        batch.adopted = True
        batch.durable = batch.durable or record.durable
        batch.subscriber = record.subscriber
        batch.received_at = batch.state.received_at = time.monotonic() - record.elapsed_s
        batch.accepted.set()
        get_logger().info("batch_taken_over", batch=batch.id, home=record.home)
        self._launch(batch)

    def _launch(self, batch: Batch) -> None:
        owner, size = batch.plan.owner, len(batch.candidates)
        if batch.adopted:
            self._admission.count(owner, size)
        else:
            ends = min((other.left_s for other in self.running), default=None)
            self._admission.admit(owner, size, share=batch.plan.share, next_end_s=ends)
        self.running.add(batch)
        if batch.key is not None:
            self.named[batch.key] = batch
        batch.task = asyncio.create_task(self._run(batch))

    # Running

    async def _run(self, batch: Batch) -> None:
        with span("batch", id=batch.id, mode=batch.plan.mode.value, candidates=len(batch.candidates)) as opened:
            opened.set(outcome=await self._live(batch))

    async def _live(self, batch: Batch) -> str:
        """The batch's whole life; how it ended."""
        outcome = "failed"
        try:
            await self._quotas.take(batch.plan.owner, batch.subscriber, len(batch.candidates), adopted=batch.adopted)
            await self._note(batch)
            answer = await score(batch, self._judges, self._keep_task)
            if answer.tally.unknown.get(Reason.INFRASTRUCTURE) and not batch.durable:
                await self._free_id(batch)
            batch.answer.set_result(answer)
            outcome = "answered"
            _measure(batch, answer)
            self._record(batch, answer)
            await self._store(batch, answer)
        except asyncio.CancelledError:
            if not batch.answer.done():
                handed_over = self.draining and batch.durable and batch.accepted.is_set()
                outcome = "handed_over" if handed_over else "cancelled"
                batch.answer.set_exception(shutting_down() if self.draining else _cancelled())
        except ProblemError as error:
            batch.answer.set_exception(error)
        except QueueUnavailable as error:
            if not batch.answer.done():
                batch.answer.set_exception(problem_of(error, self._desk))
            get_logger().warning("batch_lost_the_queue", batch=batch.id, error=str(error))
        except Exception:
            get_logger().exception("batch_failed", batch=batch.id)
            if not batch.answer.done():
                batch.answer.set_exception(
                    ProblemError(ProblemCode.INTERNAL_ERROR, f"batch {batch.id} failed; the log says why")
                )
        finally:
            self._admission.leave(batch.plan.owner, len(batch.candidates))
            await self._quotas.give_back(batch.subscriber, unscored=outcome == "failed")
            metrics.BATCHES.labels(batch.plan.mode.value, outcome).inc()
            if outcome != "handed_over":
                await self._clean_up(batch)
            self.running.discard(batch)
            if batch.key is not None and self.named.get(batch.key) is batch:
                del self.named[batch.key]
            batch.accepted.set()
        return outcome

    async def _free_id(self, batch: Batch) -> None:
        """Whoever asks for this batch again wants the faults in its answer mended, so it is not to be repeated.

        (The answer of a job is kept all the same: it is still to be fetched.)
        """
        key, batch.key = batch.key, None
        if key is None:
            return
        if self.named.get(key) is batch:
            del self.named[key]
        try:
            await self._records.forget(key)
        except QueueUnavailable as error:
            get_logger().warning("batch_id_not_freed", batch=batch.id, error=str(error))

    async def _note(self, batch: Batch) -> None:
        """Raises `QueueUnavailable`, unless the evaluator alone may decide and nobody can ask for the batch again."""
        try:
            await self._records.note(batch.subscriber, batch.key)
        except QueueUnavailable:
            plan = batch.plan
            alone = plan.mode is Mode.EVALUATOR or (plan.mode is Mode.HYBRID and plan.evaluator_only)
            if batch.key is not None or not alone:
                raise

    def _record(self, batch: Batch, answer: Answer) -> None:
        if self._recorder is not None:
            received_at = time.time() - batch.elapsed_s
            self._recorder.take(batch.id, batch.state, answer.cut, self._desk.fleet.ready, received_at)

    async def _store(self, batch: Batch, answer: Answer) -> None:
        """Keep the answer for those who ask again; the batch stays known here until that is done."""
        if batch.key is None:
            return
        for _ in range(_STORE_TRIES):
            try:
                if not await self._records.finish(batch.key, JobState.DONE, batch.progress(), answer=answer.body):
                    get_logger().warning("batch_record_lost", batch=batch.id)
                return
            except QueueUnavailable:
                await asyncio.sleep(_STORE_PAUSE_S)
        get_logger().error("batch_answer_not_kept", batch=batch.id)

    async def _clean_up(self, batch: Batch) -> None:
        """Leave nothing of a batch behind but its record, and that only when it has come to something.

        Without an answer, its jobs leave the queue and its id can be used again, except that an accepted job tells its
        caller what happened. (A job that was cancelled as such was ended in its record already.)
        """
        error = batch.answer.exception()
        try:
            if error is not None:
                await self._desk.withdraw(batch.subscriber)
            if error is not None and batch.key is not None:
                told = batch.durable and batch.accepted.is_set() and isinstance(error, ProblemError)
                if told and isinstance(error, ProblemError) and error.code is not ProblemCode.CANCELLED:
                    problem = error.document(batch.id)
                    await self._records.finish(batch.key, JobState.FAILED, batch.progress(), problem=problem)
                await self._records.forget(batch.key)
            await self._records.unnote(batch.subscriber)
        except QueueUnavailable as error_of_queue:
            get_logger().warning("batch_not_cleaned_up", batch=batch.id, error=str(error_of_queue))

    def leave(self, batch: Batch) -> None:
        """A waiter is gone. The last one takes the batch with it, unless it is a job."""
        batch.waiters -= 1
        if batch.waiters <= 0 and not batch.durable:
            batch.cancel()

    async def settled(self, record: Record) -> Record | None:
        """The record of a batch that runs elsewhere, once it has ended; None when it came to nothing there.

        Raises `ProblemError`: this server is about to stop, or the queue does not answer.
        """
        while record.state is JobState.RUNNING:
            if self.draining:
                raise shutting_down()
            await asyncio.sleep(_POLL_S)
            with self._told():
                found = await self._records.read(record.key)
                if found is None or (found.state is JobState.RUNNING and not await self._records.alive(found.home)):
                    return None
            record = found
        return record

    # Jobs

    async def find(self, owner: str, batch_id: str) -> Batch | Record | None:
        """A batch by its id. A job whose gateway is gone is taken over now."""
        key = self._records.key(owner, batch_id)
        batch = self.named.get(key)
        if batch is not None:
            return batch
        with self._told():
            record = await self._records.read(key)
            if record is not None and record.state is JobState.RUNNING and record.durable:
                return await self.take_over(record) or record
        return record

    async def cancel(self, found: Batch | Record) -> None:
        """Cancel a batch, here or elsewhere; one that has ended is left as it is."""
        with self._told():
            if isinstance(found, Batch):
                if not found.answer.done() and found.key is not None and found.task is not None:
                    await self._records.finish(found.key, JobState.CANCELLED, found.progress())
                    found.cancel()
                    await asyncio.wait({found.task})
            elif found.state is JobState.RUNNING and await self._records.finish(
                found.key, JobState.CANCELLED, anywhere=True
            ):
                await self._desk.withdraw(found.subscriber)

    async def take_over(self, record: Record) -> Batch | None:
        """Run a job here if its gateway is gone; None when it is not. Raises `QueueUnavailable`."""
        if self.draining or await self._records.alive(record.home):
            return None
        request = await self._records.request(record.key)
        if request is None:
            return None
        try:
            body = await parse_score_body(request, self._settings.max_candidates)
            plan = make_plan(body.options, self._settings, self._records.owner(record.key))
        except ProblemError as error:
            if error.code is ProblemCode.INVALID_REQUEST:
                # A newer gateway accepted it and this one cannot read it; its caller finds one that can.
                get_logger().warning("job_of_another_release", batch=record.id)
                return None
            # This server's settings do not allow any more what another one's did.
            await self._records.finish(record.key, JobState.FAILED, problem=error.document(record.id), anywhere=True)
            await self._desk.withdraw(record.subscriber)
            return None
        async with self._opening:
            if record.key in self.named:
                return self.named[record.key]
            if not await self._records.take_over(record):
                return None
            batch = Batch(
                id=record.id,
                subscriber=record.subscriber,
                digest=record.digest,
                key=record.key,
                plan=plan,
                candidates=body.candidates,
                received_at=time.monotonic(),
                durable=True,
                predictor=self._judges.predictor(plan.scheduling),
            )
            self._adopt(batch, record)
            return batch

    # The end of the process

    async def drain(self, limit_s: float) -> None:
        """Refuse new batches, let those that somebody waits for end within `limit_s`, then cancel them.

        Jobs are handed over at once: another gateway, or the next process, goes on with them.
        """
        self.draining = True
        for batch in self.running:
            if batch.durable:
                batch.cancel()
        if tasks := {batch.task for batch in self.running if batch.task is not None}:
            await asyncio.wait(tasks, timeout=limit_s)
            for batch in self.running:
                batch.cancel()
            await asyncio.wait(tasks)
        while self._side_tasks:
            await asyncio.wait(set(self._side_tasks))

    def _keep_task(self, task: asyncio.Task[None]) -> None:
        self._side_tasks.add(task)
        task.add_done_callback(self._side_tasks.discard)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What a caller is told when the queue does not answer."""
        try:
            yield
        except QueueUnavailable as error:
            raise problem_of(error, self._desk) from error


def shutting_down() -> ProblemError:
    return ProblemError(
        ProblemCode.SHUTTING_DOWN, "this server is about to stop; send the batch again", retry_after_s=_SHUTDOWN_RETRY_S
    )


def _cancelled() -> ProblemError:
    return ProblemError(ProblemCode.CANCELLED, "the batch was cancelled before it had an answer")


def _same_body(known: str, digest: str) -> None:
    if known != digest:
        raise ProblemError(ProblemCode.BATCH_CONFLICT, "a batch with this id and another body is there already")


def _measure(batch: Batch, answer: Answer) -> None:
    stats, tally = answer.stats, answer.tally
    metrics.BATCH_SECONDS.labels(batch.plan.mode.value).observe(stats.elapsed_s)
    metrics.CUTOFF_SECONDS.labels(answer.cut.reason.value).observe(answer.cut.at_s)
    metrics.LEAN_SHARE.observe(stats.lean_share)
    for (source, verdict, status), count in tally.decisions.items():
        metrics.REWARDS.labels(source.value, verdict.value, status.value).inc(count)
    for reason, count in tally.unknown.items():
        metrics.UNKNOWNS.labels(reason.value).inc(count)
    metrics.CACHED.inc(stats.cached)
    metrics.DUPLICATES.inc(stats.duplicates)
    for part in answer.degraded:
        metrics.DEGRADED.labels(part.value).inc()
    get_logger().info(
        "batch_answered",
        batch=batch.id,
        cutoff=answer.cut.reason.value,
        at_s=round(answer.cut.at_s, 3),
        **stats.model_dump(),
    )
