"""Pairs of engines, and who may use which: bounded by tokens, shared out by load, in turns where a GPU holds one model.

A *pair* is a gate and a feedback model that share a GPU. Work waits in one line a stage, higher priority first, and
goes to the pair with the fewest tokens in flight that has room. Where both models of a pair cannot be loaded at once,
the pair serves one stage until nothing of it waits or runs, and then changes over: all gates first, then the traces.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from gpu_evaluator.engines.base import EngineFault, FeedbackModel, Gate
from services.runtime import metrics
from services.runtime.logging import get_logger


class Stage(str, Enum):
    GATE = "gate"
    FEEDBACK = "feedback"

    @property
    def other(self) -> Stage:
        return Stage.FEEDBACK if self is Stage.GATE else Stage.GATE


class Swap(Protocol):
    """How a pair changes over from one stage to the other."""

    async def load(self, stage: Stage) -> None:
        """Make `stage` ready and the other give up its memory. Raises `EngineFault`."""
        ...


@dataclass(eq=False)
class Pair:
    """A gate and a feedback model. `swap`: how they take turns; None where both stay loaded.

    `room`: tokens of programs that each stage holds at once; larger work goes in while the stage is idle. `suspected`
    is set when an engine failed on a program, so that its health is looked at now.
    """

    name: str
    gate: Gate
    feedback: FeedbackModel
    room: dict[Stage, int]
    swap: Swap | None = None
    in_flight: dict[Stage, int] = field(default_factory=lambda: dict.fromkeys(Stage, 0))
    works: dict[Stage, int] = field(default_factory=lambda: dict.fromkeys(Stage, 0))
    up: dict[Stage, bool] = field(default_factory=lambda: dict.fromkeys(Stage, False))
    stage: Stage = Stage.GATE
    turn_began: float = field(default_factory=time.monotonic)
    changing: asyncio.Task[None] | None = None
    suspected: asyncio.Event = field(default_factory=asyncio.Event)

    def engine(self, stage: Stage) -> Gate | FeedbackModel:
        return self.gate if stage is Stage.GATE else self.feedback

    def loaded(self, stage: Stage) -> bool:
        return self.swap is None or (self.changing is None and self.stage is stage)

    def has_room(self, stage: Stage, tokens: int) -> bool:
        return self.works[stage] == 0 or self.in_flight[stage] + tokens <= self.room[stage]


@dataclass(order=True)
class _Waiter:
    order: tuple[int, int]
    tokens: int = field(compare=False)
    avoid: Pair | None = field(compare=False)
    granted: asyncio.Future[Pair] = field(compare=False)


class Pool:
    """All pairs of this process. `longest_turn_s`: a pair in turns changes over after this although more waits."""

    def __init__(self, pairs: Sequence[Pair], *, longest_turn_s: float = 120.0) -> None:
        if not pairs:
            raise ValueError("a pool needs a pair")
        self.pairs = tuple(pairs)
        self._longest_turn_s = longest_turn_s
        self._line: dict[Stage, list[_Waiter]] = {stage: [] for stage in Stage}
        self._numbers = itertools.count()

    @contextlib.asynccontextmanager
    async def lease(
        self, stage: Stage, tokens: int, priority: int = 0, avoid: Pair | None = None
    ) -> AsyncIterator[Pair]:
        """A pair that serves `stage`, for work of so many tokens, kept until the context ends.

        Raises `EngineFault` when no pair (other than `avoid`) serves that stage any more.
        """
        waiter = _Waiter((-priority, next(self._numbers)), tokens, avoid, asyncio.get_running_loop().create_future())
        if not self.serves(stage, avoid):
            raise EngineFault(f"no {stage.value} engine is up")
        heapq.heappush(self._line[stage], waiter)
        self._dispatch()
        try:
            pair = await waiter.granted
        except asyncio.CancelledError:
            if waiter.granted.done() and not waiter.granted.cancelled() and waiter.granted.exception() is None:
                self._give_back(waiter.granted.result(), stage, tokens)  # granted and cancelled at the same moment
            raise
        try:
            yield pair
        finally:
            self._give_back(pair, stage, tokens)

    def serves(self, stage: Stage, avoid: Pair | None = None) -> bool:
        """Whether some pair other than `avoid` can be waited for."""
        return any(pair.up[stage] for pair in self.pairs if pair is not avoid)

    def mark(self, pair: Pair, stage: Stage, up: bool) -> None:
        """Say that an engine is there, or is not; work that nobody can do any more fails at once."""
        pair.up[stage] = up
        metrics.EVALUATOR_ENGINES_UP.labels(stage.value).set(sum(p.up[stage] for p in self.pairs))
        for waiter in self._line[stage]:
            if not waiter.granted.done() and not self.serves(stage, waiter.avoid):
                waiter.granted.set_exception(EngineFault(f"no {stage.value} engine is up"))
        self._dispatch()

    def _give_back(self, pair: Pair, stage: Stage, tokens: int) -> None:
        pair.in_flight[stage] -= tokens
        pair.works[stage] -= 1
        self._dispatch()

    def _dispatch(self) -> None:
        for stage in Stage:
            self._grant(stage)
        for pair in self.pairs:
            if pair.swap is not None and pair.changing is None and self._should_change(pair):
                pair.changing = asyncio.create_task(self._change(pair, pair.swap))

    def _grant(self, stage: Stage) -> None:
        line, kept = self._line[stage], []
        while line:
            waiter = heapq.heappop(line)
            if waiter.granted.done():
                continue
            pair = self._choose(stage, waiter)
            if pair is not None:
                pair.in_flight[stage] += waiter.tokens
                pair.works[stage] += 1
                waiter.granted.set_result(pair)
                continue
            kept.append(waiter)
            if waiter.avoid is None:  # whoever is behind it must not overtake
                break
        for waiter in kept:
            heapq.heappush(line, waiter)

    def _choose(self, stage: Stage, waiter: _Waiter) -> Pair | None:
        fit = [
            pair
            for pair in self.pairs
            if pair is not waiter.avoid
            and pair.up[stage]
            and pair.loaded(stage)
            and not self._turn_is_over(pair)
            and pair.has_room(stage, waiter.tokens)
        ]
        return min(fit, key=lambda pair: pair.in_flight[stage], default=None)

    def _waits_for(self, pair: Pair, stage: Stage) -> bool:
        return pair.up[stage] and any(
            waiter.avoid is not pair and not waiter.granted.done() for waiter in self._line[stage]
        )

    def _turn_is_over(self, pair: Pair) -> bool:
        return (
            pair.swap is not None
            and time.monotonic() - pair.turn_began > self._longest_turn_s
            and self._waits_for(pair, pair.stage.other)
        )

    def _should_change(self, pair: Pair) -> bool:
        if pair.works[pair.stage] or not self._waits_for(pair, pair.stage.other):
            return False
        return self._turn_is_over(pair) or not self._waits_for(pair, pair.stage)

    async def _change(self, pair: Pair, swap: Swap) -> None:
        target, began = pair.stage.other, time.monotonic()
        log = get_logger().bind(pair=pair.name, stage=target.value)
        try:
            await swap.load(target)
        except EngineFault as error:
            log.error("change_over_failed", error=str(error))
            pair.changing = None
            for stage in Stage:  # nobody knows what is loaded; the keeper brings it up again
                self.mark(pair, stage, False)
            return
        seconds = time.monotonic() - began
        metrics.EVALUATOR_CHANGE_OVER_SECONDS.observe(seconds)
        log.info("changed_over", seconds=round(seconds, 3))
        pair.stage, pair.turn_began, pair.changing = target, time.monotonic(), None
        self._dispatch()

    async def stop(self) -> None:
        """End change-overs that are under way; what waits fails."""
        changing = [pair.changing for pair in self.pairs if pair.changing is not None]
        for task in changing:
            task.cancel()
        await asyncio.gather(*changing, return_exceptions=True)
        for pair in self.pairs:
            for stage in Stage:
                self.mark(pair, stage, False)


class InTurns:
    """Changing over by stopping one engine and starting the other: works for any two engines, and takes longest."""

    def __init__(self, gate: Gate, feedback: FeedbackModel) -> None:
        self._engines: dict[Stage, Gate | FeedbackModel] = {Stage.GATE: gate, Stage.FEEDBACK: feedback}

    async def load(self, stage: Stage) -> None:
        await self._engines[stage.other].stop()
        await self._engines[stage].start()
