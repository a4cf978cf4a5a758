"""The life of one batch: prepare, ask, wait for the cutoff, cancel the rest, merge."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from reward_gateway.batches.answer import Answer, make_answer
from reward_gateway.batches.desk import LeanDesk, LeanMissing
from reward_gateway.batches.judges import Judges
from reward_gateway.batches.plan import Plan
from reward_gateway.batches.prepare import Preparation, Prepared, prepare
from reward_gateway.batches.state import BatchState, Cut
from reward_gateway.evaluator.desk import EvaluatorDesk
from reward_gateway.limits.admission import retry_after_s
from reward_gateway.pace import Pace
from reward_gateway.scheduling.check_time import CheckTimePredictor
from reward_gateway.scheduling.policies import SchedulingPolicy
from services.contracts.jobs import JobProgress
from services.contracts.problems import Missing, ProblemCode
from services.contracts.proofs import Candidate, CutoffReason, Mode
from services.queue.errors import QueueFull, QueueUnavailable
from services.runtime.logging import get_logger
from services.runtime.problems import ProblemError
from services.runtime.tracing import span
from services.runtime.within import within

_ASK = 256
_RETRY_S = 0.5
_RETRY_AFTER_S = 5
_GATHER_S = 0.05
_REARRANGE_S = 0.5
_REARRANGE_PART = 5  # of the time that it takes, so that a huge batch does not keep the loop or the queue busy
_NO_LEAN = "no Lean worker with a warm engine announces itself"


@dataclass(slots=True, eq=False)
class Batch:
    """One batch of this gateway. `key` is its record's key, None when the caller cannot name it again.

    `durable`: it goes on when nobody waits (a job). `adopted`: it ran on a gateway that is gone. `received_at` is on
    the monotonic clock, moved so that time without a home does not count. `given`: the candidates as their route
    prepared them, where it is not the policy of a batch that decides what reaches Lean. `predictor`: the check times
    that this gateway has learned.
    """

    id: str
    subscriber: str
    digest: str
    key: str | None
    plan: Plan
    candidates: list[Candidate]
    received_at: float
    durable: bool
    adopted: bool = False
    given: Sequence[Preparation] | None = None
    predictor: CheckTimePredictor | None = None
    waiters: int = 0
    cancelling: bool = False
    accepted: asyncio.Event = field(default_factory=asyncio.Event)
    state: BatchState = field(init=False)
    answer: asyncio.Future[Answer] = field(init=False)
    task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.state = BatchState(self.plan, self.candidates, self.received_at, self.predictor)
        self.answer = asyncio.get_running_loop().create_future()
        self.answer.add_done_callback(_seen)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.received_at

    @property
    def left_s(self) -> float:
        """Seconds until the deadline."""
        return self.plan.deadline_s - self.elapsed_s

    def cancel(self) -> None:
        """Stop it, unless it has its answer already."""
        if self.task is not None and not self.answer.done():
            self.cancelling = True
            self.task.cancel()

    @property
    def lost(self) -> bool:
        """It will never have an answer."""
        return self.cancelling or (self.answer.done() and self.answer.exception() is not None)

    def progress(self) -> JobProgress:
        return self.state.progress(self.elapsed_s)


def _seen(answer: asyncio.Future[Answer]) -> None:
    """Everybody may have left before the answer: its exception then is nobody's."""
    if not answer.cancelled():
        answer.exception()


async def score(batch: Batch, judges: Judges, spawn: Callable[[asyncio.Task[None]], None]) -> Answer:
    """Run a batch to its answer; `spawn` keeps the tasks that cancel what is unfinished and keep what was learned.

    Raises:
        ProblemError: it cannot be asked now (429, 503). Nothing of it is left in the queue.
        asyncio.CancelledError: passed on; the caller withdraws.
    """
    desk, state = judges.lean, batch.state
    beside: list[asyncio.Task[None]] = []
    try:
        if batch.adopted:
            await desk.adopt(batch.subscriber, state)
        else:
            desk.open(batch.subscriber, state)
        with span("ask"):
            await _prepare_and_ask(batch, judges, beside)
        batch.accepted.set()
        with span("wait") as waiting:
            cut = await _cutoff(batch, judges)
            await desk.settled()
            waiting.set(cutoff=cut.reason.value)
    finally:
        desk.close(batch.subscriber)
        for task in beside:
            task.cancel()
    if state.waiting:
        state.lean_was_missing = not desk.lean_present
    if cut.reason is CutoffReason.DEADLINE and not state.evaluator_ended and not state.predictions:
        state.evaluator_was_missing = True  # it was asked, and nothing came
    spawn(asyncio.create_task(desk.withdraw(batch.subscriber)))
    distrusted = judges.quality.distrusted()
    with span("merge"):
        answer = await make_answer(batch.id, state, cut, time.monotonic, distrusted)
    if batch.plan.mode is Mode.HYBRID:
        spawn(asyncio.create_task(judges.quality.learn_from(state)))
    return answer


async def _prepare_and_ask(batch: Batch, judges: Judges, beside: list[asyncio.Task[None]]) -> None:
    state, pace = batch.state, Pace()
    audits = judges.quality.audits(batch.digest or batch.id) if batch.plan.mode is Mode.HYBRID else None
    new: list[Prepared] = []
    unasked: list[Prepared] = []
    for index, candidate in enumerate(batch.candidates):
        prepared = prepare(candidate, batch.plan) if batch.given is None else batch.given[index]
        if state.add(prepared, batch.elapsed_s) and isinstance(prepared, Prepared):
            new.append(prepared)
        if audits is not None and isinstance(prepared, Prepared) and audits(prepared.key):
            state.audited.add(prepared.key)
        if len(new) == _ASK:
            unasked += await _ask(batch, judges, new)
            new = []
        await pace.rest()
    unasked += await _ask(batch, judges, new)
    if unasked and batch.adopted:
        beside.append(asyncio.create_task(_keep_asking(batch, judges, unasked)))
    await _ask_evaluator(batch, judges, beside)
    state.all_added(batch.elapsed_s)


async def _ask(batch: Batch, judges: Judges, new: list[Prepared]) -> list[Prepared]:
    """Ask Lean, unless the deadline has passed already; answers what could not be asked.

    An adopted batch was accepted once and goes on whatever is missing; any other goes on without Lean only if its
    caller allows it and an evaluator is there.
    """
    if not new or batch.left_s <= 0 or batch.state.lean_was_missing:
        return []
    try:
        await judges.lean.ask(batch.subscriber, batch.state, new)
        return []
    except (QueueFull, QueueUnavailable, LeanMissing) as error:
        if batch.adopted:
            return [p for p in new if p.key not in batch.state.answers]
        if batch.plan.mode is not Mode.HYBRID or isinstance(error, QueueFull):
            raise problem_of(error, judges.lean) from error
        evaluator = await judges.evaluator_is_present()
        if not (evaluator and batch.plan.evaluator_only):
            raise problem_of(error, judges.lean, None if evaluator else judges.evaluator) from error
        batch.state.lean_is_missing()
        get_logger().warning("batch_without_lean", batch=batch.id, error=str(error))
        return []


async def _keep_asking(batch: Batch, judges: Judges, unasked: list[Prepared]) -> None:
    while unasked:
        await asyncio.sleep(_RETRY_S)
        unasked = [p for p in unasked if p.key not in batch.state.answers]
        with contextlib.suppress(QueueFull, QueueUnavailable, LeanMissing):
            await judges.lean.ask(batch.subscriber, batch.state, unasked)
            return


async def _ask_evaluator(batch: Batch, judges: Judges, beside: list[asyncio.Task[None]]) -> None:
    """Have the batch predicted beside Lean. Raises `ProblemError` (503): nobody is there who could decide."""
    state = batch.state
    if batch.plan.mode is Mode.LEAN:
        return
    alone = batch.plan.mode is Mode.EVALUATOR or state.lean_was_missing
    if alone and not batch.adopted and state.to_predict() and not await judges.evaluator_is_present():
        raise evaluator_missing(judges.evaluator, lean_too=state.lean_was_missing)
    beside.append(asyncio.create_task(judges.evaluator.predict(state, patient=batch.adopted)))
    if batch.plan.scheduling is SchedulingPolicy.VALUE and batch.plan.mode is Mode.HYBRID:
        beside.append(asyncio.create_task(_rearrange(state, judges.lean)))


async def _rearrange(state: BatchState, desk: LeanDesk) -> None:
    """Move checks forward as predictions come, in batches and not too often."""
    while True:
        await state.scored.wait()
        await asyncio.sleep(_GATHER_S)
        state.scored.clear()
        began = time.monotonic()
        changes = await asyncio.to_thread(
            state.order.raises, list(state.waiting), state.chances(), state.settled_by_group()
        )
        if changes:
            await desk.raise_priority(changes)
        await asyncio.sleep(max(_REARRANGE_S, _REARRANGE_PART * (time.monotonic() - began)))


async def _cutoff(batch: Batch, judges: Judges) -> Cut:
    """Raises `ProblemError` (503): only the evaluator was asked, and it failed on everything."""
    state, deadline_s = batch.state, batch.plan.deadline_s
    while True:
        state.changed.clear()
        cut = state.early_cut()
        if cut is not None and cut.at_s <= deadline_s:
            break
        left = batch.left_s
        if left <= 0:
            return Cut(CutoffReason.DEADLINE, deadline_s)
        try:
            async with within(left):
                await state.changed.wait()
        except asyncio.TimeoutError:
            continue
    alone = batch.plan.mode is Mode.EVALUATOR or state.lean_was_missing
    if alone and not batch.adopted and state.evaluator_was_missing and not state.predictions:
        raise evaluator_missing(judges.evaluator, lean_too=state.lean_was_missing)
    return cut


def evaluator_missing(evaluator: EvaluatorDesk, *, lean_too: bool = False) -> ProblemError:
    """What the caller is told when only an evaluator could decide and none is there."""
    missing = [Missing(component="lean", detail=_NO_LEAN)] if lean_too else []
    return ProblemError(
        ProblemCode.EVALUATOR_UNAVAILABLE,
        "no evaluator can predict now",
        missing=[*missing, Missing(component="evaluator", detail=evaluator.what_is_missing() or "it failed")],
        retry_after_s=_RETRY_AFTER_S,
    )


def problem_of(
    error: QueueFull | QueueUnavailable | LeanMissing, desk: LeanDesk, evaluator: EvaluatorDesk | None = None
) -> ProblemError:
    """What the caller is told when Lean cannot be asked; `evaluator`, where that is missing too."""
    also = [] if evaluator is None else [Missing(component="evaluator", detail=evaluator.what_is_missing())]
    if isinstance(error, QueueFull):
        return ProblemError(
            ProblemCode.QUEUE_FULL,
            f"{error.depth} jobs wait, the limit is {error.limit}",
            retry_after_s=retry_after_s(
                max(1, error.excess), desk.drain_rate, None if desk.drain_rate else _RETRY_AFTER_S
            ),
        )
    if isinstance(error, LeanMissing):
        return ProblemError(
            ProblemCode.LEAN_UNAVAILABLE,
            _NO_LEAN,
            missing=[Missing(component="lean", detail=_NO_LEAN), *also],
            retry_after_s=_RETRY_AFTER_S,
        )
    return ProblemError(
        ProblemCode.QUEUE_UNAVAILABLE,
        "the queue does not answer",
        missing=[Missing(component="queue", detail="it does not answer"), *also],
        retry_after_s=_RETRY_AFTER_S,
    )
