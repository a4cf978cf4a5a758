"""Gate and feedback model over the routes of a vLLM server."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from typing import Any

from gpu_evaluator.engines.base import (
    EngineFault,
    FeedbackAnswer,
    GateAnswer,
    Generation,
    ModelIdentity,
    OverLength,
    Sampling,
)
from gpu_evaluator.engines.labels import LABELS, label_tokens
from gpu_evaluator.engines.serving.lengths import keep_ends, longest_input, surely_fits
from gpu_evaluator.engines.serving.many import each
from gpu_evaluator.engines.serving.model import ServedModel
from gpu_evaluator.engines.serving.servers import ModelServer
from gpu_evaluator.pool import Stage
from services.runtime.logging import get_logger

_PROBE = "theorem probe : 1 + 1 = 2 := rfl\n"
_SLEEP_LEVEL = 1  # the weights stay in the machine's memory


class _Vllm(ServedModel):
    """A model on a server, under the name that the server gives it."""

    def __init__(self, server: ModelServer, toolchain: str | None, key: str | None = None) -> None:
        super().__init__(server, key)
        self._toolchain = toolchain
        self._model = ""
        self._context = 0
        self._has_priorities = True

    @property
    def identity(self) -> ModelIdentity:
        return ModelIdentity(self._model or "vllm", self._toolchain)

    async def sleep(self) -> None:
        """Give up the GPU's memory. Raises `EngineFault`."""
        await self.link.command(f"/sleep?level={_SLEEP_LEVEL}")

    async def wake(self) -> None:
        """Take it again. Raises `EngineFault`."""
        await self.link.command("/wake_up")

    async def tokenize(self, text: str) -> list[int]:
        body = {"model": self._model, "prompt": text, "add_special_tokens": False}
        return await self.link.post("/tokenize", body, lambda answer: [int(token) for token in answer["tokens"]])

    async def _open(self) -> None:
        self._model, self._context = await self.link.get("/v1/models", _read_model)

    def _common(self, priority: int) -> dict[str, Any]:
        # vLLM runs lower numbers first, and a server with another policy refuses every number but 0.
        ranked = {"priority": -priority} if priority and self._has_priorities else {}
        return {"model": self._model, "add_special_tokens": False, **ranked}


class VllmGate(_Vllm):
    """The one-token classifier: P(true), normalised over `true` and `false` (learning-lean-feedback, Section 4.1).

    Both come exactly, from the log-probabilities over the whole vocabulary of the first generated token.
    """

    _labels = (-1, -1)

    async def score(self, programs: Sequence[str], *, priority: int = 0) -> AsyncIterator[tuple[int, GateAnswer]]:
        async for index, answer in each(programs, lambda program: self._score(program, priority)):
            yield index, answer

    async def _open(self) -> None:
        await super()._open()
        self._labels = label_tokens([await self.tokenize(label) for label in LABELS])
        try:
            await self._score(_PROBE, 0)
        except EngineFault as error:
            raise EngineFault(f"it gives no label scores (does it speculate?): {error}") from error
        try:
            await self._score(_PROBE, 1)
        except EngineFault as error:
            self._has_priorities = False
            get_logger().warning("no_priorities", model=self._model, error=str(error))

    async def _score(self, program: str, priority: int) -> GateAnswer:
        limit = self._context - 1
        prompt: str | list[int] = program
        if not surely_fits(program, limit):
            prompt = keep_ends(await self.tokenize(program), limit)
        body = {
            **self._common(priority),
            "prompt": prompt,
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": 0,
            "logprob_token_ids": list(self._labels),
            "return_tokens_as_token_ids": True,
        }
        return await self.link.post("/v1/completions", body, self._read)

    def _read(self, answer: Any) -> float:
        found = answer["choices"][0]["logprobs"]["top_logprobs"][0]
        true, false = (float(found[f"token_id:{label}"]) for label in self._labels)
        if not (math.isfinite(true) and math.isfinite(false)):
            raise ValueError("a label has no finite log-probability")
        return 0.5 * (1 + math.tanh(0.5 * (true - false)))


class VllmFeedback(_Vllm):
    """Writes traces. `max_tokens`: the longest, in tokens."""

    def __init__(self, server: ModelServer, toolchain: str | None, max_tokens: int, key: str | None = None) -> None:
        super().__init__(server, toolchain, key)
        self._max_tokens = max_tokens

    async def annotate(
        self, programs: Sequence[str], sampling: Sampling, *, priority: int = 0
    ) -> AsyncIterator[tuple[int, FeedbackAnswer]]:
        async for index, answer in each(programs, lambda program: self._annotate(program, sampling, priority)):
            yield index, answer

    async def _open(self) -> None:
        await super()._open()
        body = {**self._common(1), "prompt": _PROBE, "max_tokens": 1, "temperature": 0}
        try:
            await self.link.post("/v1/completions", body, _read_traces)
        except EngineFault as error:
            self._has_priorities = False
            get_logger().warning("no_priorities", model=self._model, error=str(error))
            await self.link.post("/v1/completions", {**body, "priority": 0}, _read_traces)

    async def _annotate(self, program: str, sampling: Sampling, priority: int) -> FeedbackAnswer:
        tokens = await self.tokenize(program)
        limit = longest_input(self._context)
        if len(tokens) > limit:
            return OverLength(f"{len(tokens)} tokens, {limit} fit")
        body = {
            **self._common(priority),
            "prompt": tokens,
            "max_tokens": min(self._max_tokens, self._context - len(tokens)),
            "n": sampling.samples,
            "temperature": sampling.temperature,
            "seed": 0,
        }
        return await self.link.post("/v1/completions", body, _read_traces)


class AsleepInTurns:
    """Changing over by vLLM's sleep mode: both servers run, and one of them has given up the GPU's memory."""

    def __init__(self, gate: VllmGate, feedback: VllmFeedback) -> None:
        self._engines: tuple[_Vllm, _Vllm] = (gate, feedback)
        self._awake: set[_Vllm] = set()

    async def load(self, stage: Stage) -> None:
        wanted, other = self._engines if stage is Stage.GATE else reversed(self._engines)
        if other in self._awake and other.running:
            await other.sleep()
        self._awake.discard(other)
        if not wanted.running:
            await wanted.start()
        elif wanted not in self._awake:
            await wanted.wake()
        self._awake.add(wanted)


def _read_model(answer: Any) -> tuple[str, int]:
    model = answer["data"][0]
    return str(model["id"]), int(model["max_model_len"])


def _read_traces(answer: Any) -> tuple[Generation, ...]:
    choices = sorted(answer["choices"], key=lambda choice: int(choice["index"]))
    for choice in choices:
        if choice["finish_reason"] not in ("stop", "length"):
            raise ValueError(f"a generation ended by {choice['finish_reason']!r}")
    return tuple(Generation(str(choice["text"]), choice["finish_reason"] == "length") for choice in choices)
