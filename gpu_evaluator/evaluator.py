"""The evaluator of this process: engines kept running, requests admitted, predictions as wire lines."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing

from gpu_evaluator.cascade import CascadePrediction, CascadeRule
from gpu_evaluator.engines.absent import NoFeedback
from gpu_evaluator.engines.base import ModelIdentity, Sampling
from gpu_evaluator.keeper import Keeper
from gpu_evaluator.pipeline import GateScore, Limits, Pipeline
from gpu_evaluator.pool import Pair, Pool, Stage
from services.contracts.base import MAX_PROGRAM_CHARACTERS
from services.contracts.evaluator import (
    EvaluateRequest,
    EvaluationMethod,
    EvaluatorModel,
    EvaluatorReadiness,
    Prediction,
)
from services.contracts.outcomes import Reason, Verdict
from services.contracts.problems import Missing
from services.runtime import metrics
from services.runtime.settings import EvaluatorSettings
from services.runtime.within import within

_RATE_MEMORY = 0.9
_SHORTEST_RETRY_S, _LONGEST_RETRY_S = 1, 600
_LONGEST_DETAIL = 500


class TooMuchInFlight(Exception):
    """The admission limit. `retry_after_s`: whole seconds after which there should be room."""

    def __init__(self, programs: int, retry_after_s: int) -> None:
        super().__init__(f"{programs} programs are in flight already; try again later")
        self.retry_after_s = retry_after_s


class Evaluator:
    """Engines, the pipeline over them, and how much of it is used. `start` before the first request, `stop` at last."""

    def __init__(self, pairs: Sequence[Pair], settings: EvaluatorSettings) -> None:
        self._settings = settings
        self._pool = Pool(pairs, longest_turn_s=settings.turn_s)
        self._keeper = Keeper(self._pool, health_s=settings.health_s)
        self._pipeline = Pipeline(self._pool, Limits(chunk_programs=settings.chunk, silence_s=settings.silence_s))
        self._rate = 0.0  # programs answered a second of late
        self._idle = asyncio.Event()
        self._idle.set()
        self.in_flight = 0
        self.draining = False

    async def start(self) -> None:
        """Bring the engines up in the background; `readiness` tells when."""
        metrics.EVALUATOR_DEMONSTRATION.set(any(model.demonstration for model in self._identities()))
        self._keeper.start()

    async def stop(self) -> None:
        await self._keeper.stop()

    async def drain(self, limit_s: float) -> None:
        """Refuse new requests and wait until the running ones have ended, at most `limit_s` seconds."""
        self.draining = True
        with contextlib.suppress(asyncio.TimeoutError):
            async with within(limit_s):
                await self._idle.wait()

    def can(self, method: EvaluationMethod | None) -> bool:
        """Whether there is a model for it; None is the method of the settings."""
        needs_feedback = (method or self._settings.method) is not EvaluationMethod.GATE
        return not (needs_feedback and isinstance(self._pool.pairs[0].feedback, NoFeedback))

    def readiness(self) -> EvaluatorReadiness:
        missing = [
            Missing(component="evaluator", detail=f"no {stage.value} engine is up")
            for stage in Stage
            if not self._pool.serves(stage)
        ]
        if self.draining:
            missing.append(Missing(component="evaluator", detail="it is shutting down"))
        gate, feedback = self._identities()
        warnings = [
            f"{model.name} is a demonstration; its predictions mean nothing"
            for model in dict.fromkeys((gate, feedback))
            if model.demonstration
        ]
        return EvaluatorReadiness(
            status="not_ready" if missing else "ready",
            missing=tuple(missing),
            warnings=tuple(warnings),
            gate=_wire(gate),
            feedback=_wire(feedback),
            pairs=len(self._pool.pairs),
            ready=sum(all(pair.up.values()) for pair in self._pool.pairs),
            in_flight=self.in_flight,
        )

    @contextlib.contextmanager
    def admit(self, programs: int) -> Iterator[None]:
        """Count programs in while the context is open. A request larger than the bound goes in when nothing else is in.

        Raises `TooMuchInFlight`.
        """
        excess = self.in_flight + programs - self._settings.max_in_flight
        if self.in_flight and excess > 0:
            wait_s = excess / self._rate if self._rate > 0 else math.inf
            raise TooMuchInFlight(self.in_flight, max(_SHORTEST_RETRY_S, math.ceil(min(wait_s, _LONGEST_RETRY_S))))
        self._count(programs)
        began = time.monotonic()
        try:
            yield
        finally:
            self._count(-programs)
            rate = programs / max(time.monotonic() - began, 1e-3)
            self._rate = rate if self._rate == 0 else _RATE_MEMORY * self._rate + (1 - _RATE_MEMORY) * rate

    async def evaluate(self, request: EvaluateRequest, received: float) -> AsyncGenerator[Prediction, None]:
        """Yield a prediction for each program as it is ready; `received` is the monotonic time of the request.

        At the request's deadline the rest is `unknown`, `not_decided`. Closing the generator aborts what runs.
        """
        method = request.method or self._settings.method
        fit = [program for program in request.programs if len(program.code) <= MAX_PROGRAM_CHARACTERS]
        for program in request.programs:
            if len(program.code) > MAX_PROGRAM_CHARACTERS:
                detail = f"{len(program.code):,} characters; at most {MAX_PROGRAM_CHARACTERS:,} are read"
                yield Prediction(id=program.id, verdict=Verdict.INVALID, reason=Reason.TOO_LONG, detail=detail)
        open_ids = dict.fromkeys(program.id for program in fit)
        events = self._pipeline.predict(
            [program.code for program in fit],
            self._rule(method),
            gate_only=method is EvaluationMethod.GATE,
            priority=request.priority,
        )
        end = math.inf if request.deadline_s is None else received + request.deadline_s
        async with aclosing(events):
            while open_ids:
                try:
                    left_s = None if end == math.inf else max(0.0, end - time.monotonic())
                    async with within(left_s):
                        index, event = await events.__anext__()
                except asyncio.TimeoutError:
                    break
                elapsed_s = time.monotonic() - received
                if isinstance(event, CascadePrediction):
                    del open_ids[fit[index].id]
                    metrics.EVALUATIONS.labels(event.verdict.value, event.reason.value).inc()
                    yield _prediction(fit[index].id, event, elapsed_s, with_trace=request.trace)
                elif request.scores:
                    yield _score_line(fit[index].id, event, elapsed_s)
        for program_id in open_ids:
            metrics.EVALUATIONS.labels(Verdict.UNKNOWN.value, Reason.NOT_DECIDED.value).inc()
            detail = "the deadline of the request came first"
            yield Prediction(id=program_id, verdict=Verdict.UNKNOWN, reason=Reason.NOT_DECIDED, detail=detail)
        metrics.EVALUATION_SECONDS.labels(method.value).observe(time.monotonic() - received)

    def _rule(self, method: EvaluationMethod) -> CascadeRule:
        settings = self._settings
        if method is EvaluationMethod.SELF_CONSISTENCY:
            sampling = Sampling(settings.samples, settings.temperature)
            return CascadeRule(settings.threshold, sampling, settings.quorum, settings.tags)
        return CascadeRule(settings.threshold, tags=settings.tags)

    def _identities(self) -> tuple[ModelIdentity, ModelIdentity]:
        pair = self._pool.pairs[0]
        return pair.gate.identity, pair.feedback.identity

    def _count(self, programs: int) -> None:
        self.in_flight += programs
        metrics.EVALUATIONS_IN_FLIGHT.set(self.in_flight)
        if self.in_flight:
            self._idle.clear()
        else:
            self._idle.set()


def _prediction(program_id: str, event: CascadePrediction, elapsed_s: float, *, with_trace: bool) -> Prediction:
    return Prediction(
        id=program_id,
        verdict=event.verdict,
        reason=event.reason,
        gate=event.gate,
        feedback=event.feedback,
        trace=_sendable(event.traces[0].text) if with_trace and event.traces else None,
        detail=event.detail[:_LONGEST_DETAIL],
        elapsed_s=elapsed_s,
    )


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _score_line(program_id: str, event: GateScore, elapsed_s: float) -> Prediction:
    return Prediction(
        id=program_id,
        verdict=Verdict.UNKNOWN,
        reason=Reason.NOT_DECIDED,
        gate=event.score,
        detail="passed the gate",
        elapsed_s=elapsed_s,
    )


def _wire(identity: ModelIdentity) -> EvaluatorModel:
    return EvaluatorModel(name=identity.name, toolchain=identity.toolchain, demonstration=identity.demonstration)
