"""The life of one batch: prepare, ask, wait for the cutoff, cancel the rest, merge."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from reward_gateway.batches.admission import retry_after_s
from reward_gateway.batches.answer import Answer, make_answer
from reward_gateway.batches.desk import LeanDesk, LeanMissing
from reward_gateway.batches.plan import Plan
from reward_gateway.batches.prepare import Preparation, Prepared, prepare
from reward_gateway.batches.state import BatchState, Cut
from reward_gateway.errors import ProblemError
from reward_gateway.pace import Pace
from services.contracts.jobs import JobProgress
from services.contracts.problems import Missing, ProblemCode
from services.contracts.proofs import Candidate, CutoffReason
from services.queue.errors import QueueFull, QueueUnavailable

_ASK = 256
_RETRY_S = 0.5
_RETRY_AFTER_S = 5


@dataclass(slots=True, eq=False)
class Batch:
    """One batch of this gateway. `key` is its record's key, None when the caller cannot name it again.

    `durable`: it goes on when nobody waits (a job). `adopted`: it ran on a gateway that is gone. `received_at` is on
    the monotonic clock, moved so that time without a home does not count. `given`: the candidates as their route
    prepared them, where it is not the policy of a batch that decides what reaches Lean.
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
    waiters: int = 0
    cancelling: bool = False
    accepted: asyncio.Event = field(default_factory=asyncio.Event)
    state: BatchState = field(init=False)
    answer: asyncio.Future[Answer] = field(init=False)
    task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.state = BatchState(self.plan, self.candidates, self.received_at)
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


async def score(batch: Batch, desk: LeanDesk, spawn: Callable[[asyncio.Task[None]], None]) -> Answer:
    """Run a batch to its answer; `spawn` keeps the task that cancels what is unfinished.

    Raises:
        ProblemError: it cannot be asked now (429, 503). Nothing of it is left in the queue.
        asyncio.CancelledError: passed on; the caller withdraws.
    """
    if batch.adopted:
        await desk.adopt(batch.subscriber, batch.state)
    else:
        desk.open(batch.subscriber, batch.state)
    try:
        await _prepare_and_ask(batch, desk)
        batch.accepted.set()
        cut = await _cutoff(batch)
    finally:
        desk.close(batch.subscriber)
    if batch.state.waiting:
        batch.state.lean_was_missing = not desk.lean_present
    spawn(asyncio.create_task(desk.withdraw(batch.subscriber)))
    return await make_answer(batch.id, batch.state, cut, time.monotonic)


async def _prepare_and_ask(batch: Batch, desk: LeanDesk) -> None:
    state, pace = batch.state, Pace()
    new: list[Prepared] = []
    for index, candidate in enumerate(batch.candidates):
        prepared = prepare(candidate, batch.plan) if batch.given is None else batch.given[index]
        if state.add(prepared, batch.elapsed_s) and isinstance(prepared, Prepared):
            new.append(prepared)
        if len(new) == _ASK:
            await _ask(batch, desk, new)
            new = []
        await pace.rest()
    await _ask(batch, desk, new)
    state.all_added()


async def _ask(batch: Batch, desk: LeanDesk, new: list[Prepared]) -> None:
    """Ask Lean, unless the deadline has passed already. An adopted batch was accepted once and keeps trying."""
    while new and batch.left_s > 0:
        try:
            await desk.ask(batch.subscriber, batch.state, new)
            return
        except (QueueFull, QueueUnavailable, LeanMissing) as error:
            if not batch.adopted:
                raise problem_of(error, desk) from error
        await asyncio.sleep(min(_RETRY_S, max(batch.left_s, 0.0)))
        new = [p for p in new if p.key not in batch.state.answers]


async def _cutoff(batch: Batch) -> Cut:
    state, deadline_s = batch.state, batch.plan.deadline_s
    while True:
        state.changed.clear()
        cut = state.early_cut()
        if cut is not None and cut.at_s <= deadline_s:
            return cut
        left = batch.left_s
        if left <= 0:
            return Cut(CutoffReason.DEADLINE, deadline_s)
        try:
            await asyncio.wait_for(state.changed.wait(), left)
        except asyncio.TimeoutError:
            continue


def problem_of(error: QueueFull | QueueUnavailable | LeanMissing, desk: LeanDesk) -> ProblemError:
    """What the caller is told when Lean cannot be asked."""
    if isinstance(error, QueueFull):
        return ProblemError(
            ProblemCode.QUEUE_FULL,
            f"{error.depth} jobs wait, the limit is {error.limit}",
            retry_after_s=retry_after_s(max(1, error.depth // 10), desk.rate, None if desk.rate else _RETRY_AFTER_S),
        )
    if isinstance(error, LeanMissing):
        detail = "no Lean worker with a warm engine announces itself"
        return ProblemError(
            ProblemCode.LEAN_UNAVAILABLE,
            detail,
            missing=[Missing(component="lean", detail=detail)],
            retry_after_s=_RETRY_AFTER_S,
        )
    return ProblemError(
        ProblemCode.QUEUE_UNAVAILABLE,
        "the queue does not answer",
        missing=[Missing(component="queue", detail="it does not answer")],
        retry_after_s=_RETRY_AFTER_S,
    )
