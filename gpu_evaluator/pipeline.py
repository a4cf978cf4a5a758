"""Moves programs through gate and feedback model, and yields each prediction as soon as it is ready.

The gate sees bounded chunks, so that it can batch; what passes goes to the feedback model one by one while the gate
goes on. Programs are stripped of marks before any model sees them, and identical ones are asked once. An engine that
fails on a program, answers out of bounds, ends its stream early or stays silent costs the program one retry on another
pair; after that the prediction is `unknown`, `infrastructure`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from gpu_evaluator.cascade import CascadePrediction, CascadeRule, accept_by_gate, decide_feedback, decide_gate
from gpu_evaluator.engines.base import EngineFault, FeedbackAnswer, GateAnswer
from gpu_evaluator.feedback.verdict import seen_text
from gpu_evaluator.pool import Pair, Pool, Stage
from services.contracts.outcomes import Reason, Verdict
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.within import within

_Answer = TypeVar("_Answer")

BYTES_PER_TOKEN = 3
"""Rough size of a token of Lean for a Qwen tokenizer: only for sharing out work, never for limits of a model."""


BLANK = CascadePrediction(Verdict.INVALID, Reason.NO_CODE, "the program is blank")
"""No model is asked about a program without a token."""


@dataclass(frozen=True, slots=True)
class GateScore:
    """News that a program passed the gate and waits for the feedback model."""

    score: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a chunk for the gate, and the longest silence of an engine, seconds."""

    chunk_programs: int = 64
    chunk_tokens: int = 65_536
    silence_s: float = 300.0


@dataclass(frozen=True, slots=True)
class _Program:
    text: str
    indices: tuple[int, ...]

    @property
    def tokens(self) -> int:
        return 1 + len(self.text.encode()) // BYTES_PER_TOKEN


Event = tuple[int, CascadePrediction | GateScore]


class Pipeline:
    """Predicts verdicts with the engines of a pool."""

    def __init__(self, pool: Pool, limits: Limits = Limits()) -> None:
        self._pool = pool
        self._limits = limits

    async def predict(
        self, programs: Sequence[str], rule: CascadeRule, *, gate_only: bool = False, priority: int = 0
    ) -> AsyncGenerator[Event, None]:
        """Yield (index, prediction) once for each program, in the order in which they are ready.

        A program that passes the gate has a `GateScore` before its prediction. Closing the generator aborts what runs.
        """
        run = _Run(self._pool, self._limits, rule, gate_only, priority)
        run.begin(programs)
        left = len(programs)
        try:
            while left:
                event = await run.events.get()
                if isinstance(event, BaseException):
                    raise event
                left -= isinstance(event[1], CascadePrediction)
                yield event
        finally:
            await run.stop()


class _Run:
    """One call of `predict`: its tasks and the events they produce."""

    def __init__(self, pool: Pool, limits: Limits, rule: CascadeRule, gate_only: bool, priority: int) -> None:
        self._pool, self._limits, self._rule = pool, limits, rule
        self._gate_only, self._priority = gate_only, priority
        self._tasks: set[asyncio.Task[None]] = set()
        self.events: asyncio.Queue[Event | BaseException] = asyncio.Queue()

    def begin(self, programs: Sequence[str]) -> None:
        unique = _unique(programs)
        for program in unique:
            if not program.text.strip():
                self._emit(program, BLANK)
        for chunk in _chunks([program for program in unique if program.text.strip()], self._limits):
            self._spawn(self._score(chunk))

    async def stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.events.put_nowait(error)  # a defect of ours: the reader must not wait for ever

    def _emit(self, program: _Program, event: CascadePrediction | GateScore) -> None:
        for index in program.indices:
            self.events.put_nowait((index, event))

    async def _score(self, chunk: Sequence[_Program], avoid: Pair | None = None) -> None:
        faults: dict[int, EngineFault] = {}
        used: Pair | None = None
        try:
            async with self._pool.lease(Stage.GATE, sum(p.tokens for p in chunk), self._priority, avoid) as used:
                stream = used.gate.score([p.text for p in chunk], priority=self._priority)
                async for index, answer in _answers(stream, len(chunk), _check_score, self._limits.silence_s):
                    if isinstance(answer, EngineFault):
                        faults[index] = answer
                    else:
                        self._after_gate(chunk[index], answer)
        except EngineFault as error:  # no pair serves the gate
            faults = dict.fromkeys(range(len(chunk)), error)
        if not faults:
            return
        if self._may_retry(Stage.GATE, used, avoid, list(faults.values())):
            await self._score([chunk[index] for index in faults], used)
            return
        for index, fault in faults.items():
            self._after_gate(chunk[index], fault)

    def _after_gate(self, program: _Program, answer: GateAnswer) -> None:
        decided = accept_by_gate(answer, self._rule) if self._gate_only else decide_gate(answer, self._rule)
        if decided is not None:
            self._emit(program, decided)
        elif not isinstance(answer, EngineFault):
            self._emit(program, GateScore(answer))
            self._spawn(self._annotate(program, answer))

    async def _annotate(self, program: _Program, score: float, avoid: Pair | None = None) -> None:
        sampling = self._rule.sampling
        tokens = 2 * program.tokens * sampling.samples  # what is read, and about as much that is written
        answer: FeedbackAnswer = EngineFault("no answer")
        used: Pair | None = None
        try:
            async with self._pool.lease(Stage.FEEDBACK, tokens, self._priority, avoid) as used:
                stream = used.feedback.annotate([program.text], sampling, priority=self._priority)
                check = _TracesOf(sampling.samples)
                async for _, traces in _answers(stream, 1, check, self._limits.silence_s):
                    answer = traces
        except EngineFault as error:  # no pair serves the feedback model
            answer = error
        if isinstance(answer, EngineFault) and self._may_retry(Stage.FEEDBACK, used, avoid, [answer]):
            await self._annotate(program, score, used)
            return
        self._emit(program, decide_feedback(score, answer, self._rule, program.text))

    def _may_retry(self, stage: Stage, used: Pair | None, avoid: Pair | None, faults: Sequence[EngineFault]) -> bool:
        """Count the faults; answer whether their programs go to another pair, for the first and only time."""
        if used is not None:
            used.suspected.set()
        metrics.EVALUATOR_FAULTS.labels(stage.value).inc(len(faults))
        name = used.name if used else None
        get_logger().warning("engine_fault", stage=stage.value, pair=name, programs=len(faults), error=str(faults[0]))
        if used is None or avoid is not None or not self._pool.serves(stage, used):
            return False
        metrics.EVALUATOR_RETRIES.labels(stage.value).inc(len(faults))
        return True


async def _answers(
    stream: AsyncIterator[tuple[int, _Answer]],
    count: int,
    check: Callable[[_Answer], _Answer],
    silence_s: float,
) -> AsyncGenerator[tuple[int, _Answer | EngineFault], None]:
    """The answers of an engine, held to its contract: (index, answer) once for each of `count` programs.

    What it leaves out, because it failed, fell silent or stopped early, is an `EngineFault`.
    """
    missing = set(range(count))
    fault = EngineFault("the engine's stream ended before its answer")
    async with _closing(stream) as answers:
        while missing:
            try:
                async with within(silence_s):
                    index, answer = await answers.__anext__()
            except StopAsyncIteration:
                break
            except asyncio.TimeoutError:
                fault = EngineFault(f"the engine gave no answer for {silence_s:g} s")
                break
            except EngineFault as error:
                fault = error
                break
            if index not in missing:
                fault = EngineFault("the engine answered for a program that it was not asked about")
                break
            missing.remove(index)
            yield index, check(answer)
    for index in sorted(missing):
        yield index, fault


@contextlib.asynccontextmanager
async def _closing(stream: AsyncIterator[_Answer]) -> AsyncIterator[AsyncIterator[_Answer]]:
    """Close a generator of an engine, which aborts what it still runs."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


def _check_score(answer: GateAnswer) -> GateAnswer:
    if isinstance(answer, EngineFault) or 0 <= answer <= 1:  # NaN is not
        return answer
    return EngineFault(f"the gate's score {answer!r} is no probability")


class _TracesOf:
    """Accepts so many traces for a program."""

    def __init__(self, samples: int) -> None:
        self._samples = samples

    def __call__(self, answer: FeedbackAnswer) -> FeedbackAnswer:
        if isinstance(answer, tuple) and len(answer) != self._samples:
            return EngineFault(f"the feedback model gave {len(answer)} traces instead of {self._samples}")
        return answer


def _unique(programs: Sequence[str]) -> list[_Program]:
    places: dict[str, list[int]] = {}
    for index, program in enumerate(programs):
        places.setdefault(seen_text(program), []).append(index)
    return [_Program(text, tuple(indices)) for text, indices in places.items()]


def _chunks(programs: Sequence[_Program], limits: Limits) -> Iterator[list[_Program]]:
    """The longest first, so that none is alone at the end; alike in length, so that a batch wastes no padding."""
    chunk: list[_Program] = []
    tokens = 0
    for program in sorted(programs, key=lambda p: p.tokens, reverse=True):
        if chunk and (len(chunk) == limits.chunk_programs or tokens + program.tokens > limits.chunk_tokens):
            yield chunk
            chunk, tokens = [], 0
        chunk.append(program)
        tokens += program.tokens
    if chunk:
        yield chunk
