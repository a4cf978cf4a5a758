"""The linear model behind the two engine interfaces."""

from __future__ import annotations

import asyncio
import math
import random
import zlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from gpu_evaluator.engines.base import FeedbackAnswer, GateAnswer, Generation, ModelIdentity, Sampling
from gpu_evaluator.engines.linear.model import Head, LinearModel, load, sigmoid
from gpu_evaluator.feedback.trace import build_trace
from services.contracts.lean import Message, Position, Severity

_STEP = 8  # programs between two looks at the event loop
_MESSAGE = "(demonstration) a linear model expects that Lean has objected by here"


class _Loaded:
    """What both engines share: the model, loaded at the start."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._model: LinearModel | None = None

    @property
    def identity(self) -> ModelIdentity:
        toolchain = None if self._model is None else self._model.toolchain
        return ModelIdentity("linear-demo", toolchain, demonstration=True)

    async def start(self) -> None:
        self._model = await asyncio.to_thread(load, self._path)

    async def healthy(self) -> bool:
        return self._model is not None

    async def stop(self) -> None:
        self._model = None

    @property
    def model(self) -> LinearModel:
        if self._model is None:
            raise RuntimeError("the engine is not started")
        return self._model


class LinearGate(_Loaded):
    """Scores a program by what stands on its lines."""

    async def score(self, programs: Sequence[str], *, priority: int = 0) -> AsyncIterator[tuple[int, GateAnswer]]:
        head = self.model.gate
        for start in range(0, len(programs), _STEP):
            step = programs[start : start + _STEP]
            logits = await asyncio.to_thread(_logits, head, step)
            for offset, logit in enumerate(logits):
                yield start + offset, sigmoid(logit)


class LinearFeedback(_Loaded):
    """Copies the program, and where it expects an error writes a template after the worst line and stops."""

    async def annotate(
        self, programs: Sequence[str], sampling: Sampling, *, priority: int = 0
    ) -> AsyncIterator[tuple[int, FeedbackAnswer]]:
        for index, program in enumerate(programs):
            yield index, await asyncio.to_thread(self._traces, program, sampling)

    def _traces(self, program: str, sampling: Sampling) -> tuple[Generation, ...]:
        head = self.model.feedback
        added = head.line_logits(program)
        logit = head.bias + float(added.sum())
        noise = random.Random(zlib.crc32(program.encode("utf-8", "surrogatepass")))
        # Adding logistic noise of that temperature draws from the distribution that the logit stands for at it.
        drawn = [logit + sampling.temperature * _logistic(noise) for _ in range(sampling.samples)]
        objection = _objection(program, 1 + int(added.argmin()))
        return tuple(Generation(objection if value < 0 else program, hit_limit=False) for value in drawn)


def _logits(head: Head, programs: Sequence[str]) -> list[float]:
    return [head.logit(program) for program in programs]


def _objection(program: str, line: int) -> str:
    message = Message(severity=Severity.ERROR, data=_MESSAGE, pos=Position(line=line, column=0))
    return build_trace(program, [], [message])


def _logistic(noise: random.Random) -> float:
    chance = min(max(noise.random(), 1e-12), 1 - 1e-12)
    return math.log(chance / (1 - chance))
