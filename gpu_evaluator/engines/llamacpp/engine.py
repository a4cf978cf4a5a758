"""Gate and feedback model on llama.cpp's server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_evaluator.engines.base import (
    FeedbackAnswer,
    GateAnswer,
    Generation,
    ModelIdentity,
    OverLength,
    Sampling,
)
from gpu_evaluator.engines.labels import LABELS, label_tokens
from gpu_evaluator.engines.serving.lengths import keep_ends, longest_input
from gpu_evaluator.engines.serving.many import each, together
from gpu_evaluator.engines.serving.model import ServedModel
from gpu_evaluator.engines.serving.servers import ChildServer

# Both labels are lifted by the same amount: their ratio stays, and everything else has no weight left.
_LIFT = 100.0


@dataclass(frozen=True, slots=True)
class LlamaCppOptions:
    """How one model is run. `context`: tokens of one slot; `slots`: programs at a time."""

    model: Path
    context: int
    slots: int
    threads: int
    gpu_layers: int
    start_s: float


class _LlamaCpp(ServedModel):
    """A model on a server of its own."""

    def __init__(self, options: LlamaCppOptions, toolchain: str | None) -> None:
        super().__init__(ChildServer(self._command, start_s=options.start_s))
        self._options = options
        self.identity = ModelIdentity(options.model.stem, toolchain)
        self._context = options.context
        self._slots = asyncio.Semaphore(options.slots)

    async def tokenize(self, text: str) -> list[int]:
        body = {"content": text, "add_special": False, "parse_special": False}
        return await self.link.post("/tokenize", body, lambda answer: [int(token) for token in answer["tokens"]])

    async def _open(self) -> None:
        self._context = await self.link.get("/props", lambda d: int(d["default_generation_settings"]["n_ctx"]))

    def _command(self, port: int) -> list[str]:
        options = self._options
        return [
            sys.executable,
            "-m",
            "gpu_evaluator.engines.llamacpp.host",
            str(options.model),
            str(port),
            f"--context={options.context}",
            f"--slots={options.slots}",
            f"--threads={options.threads}",
            f"--gpu-layers={options.gpu_layers}",
        ]


class LlamaCppGate(_LlamaCpp):
    """The one-token classifier: P(true), normalised over `true` and `false` (learning-lean-feedback, Section 4.1)."""

    _labels = (-1, -1)

    async def score(self, programs: Sequence[str], *, priority: int = 0) -> AsyncIterator[tuple[int, GateAnswer]]:
        async for index, answer in each(programs, self._score):
            yield index, answer

    async def _open(self) -> None:
        await super()._open()
        self._labels = label_tokens([await self.tokenize(label) for label in LABELS])

    async def _score(self, program: str) -> GateAnswer:
        async with self._slots:
            tokens = await self.tokenize(program)
            limit = self._context - 1
            body = {
                "prompt": keep_ends(tokens, limit),
                "n_predict": 1,
                "samplers": ["temperature"],
                "temperature": 1.0,
                "logit_bias": [[label, _LIFT] for label in self._labels],
                "n_probs": 2,
                "post_sampling_probs": True,
                "cache_prompt": False,
            }
            return await self.link.post("/completion", body, self._read)

    def _read(self, answer: Any) -> float:
        found = {entry["id"]: float(entry["prob"]) for entry in answer["completion_probabilities"][0]["top_probs"]}
        true, false = (found.get(label, 0.0) for label in self._labels)
        return true / (true + false)


class LlamaCppFeedback(_LlamaCpp):
    """Writes traces. `max_tokens`: the longest, in tokens."""

    def __init__(self, options: LlamaCppOptions, toolchain: str | None, max_tokens: int) -> None:
        super().__init__(options, toolchain)
        self._max_tokens = max_tokens

    async def annotate(
        self, programs: Sequence[str], sampling: Sampling, *, priority: int = 0
    ) -> AsyncIterator[tuple[int, FeedbackAnswer]]:
        async for index, answer in each(programs, lambda program: self._annotate(program, sampling)):
            yield index, answer

    async def _annotate(self, program: str, sampling: Sampling) -> FeedbackAnswer:
        tokens = await self.tokenize(program)
        limit = longest_input(self._context)
        if len(tokens) > limit:
            return OverLength(f"{len(tokens)} tokens, {limit} fit")
        traces = [self._trace(tokens, sampling.temperature, seed) for seed in range(sampling.samples)]
        return await together(traces)

    async def _trace(self, tokens: Sequence[int], temperature: float, seed: int) -> Generation:
        async with self._slots:
            body = {
                "prompt": list(tokens),
                "n_predict": min(self._max_tokens, self._context - len(tokens)),
                "samplers": ["temperature"],
                "temperature": temperature,
                "seed": seed,
                # What is reused of an earlier run can differ in its last bits; greedy traces shall not depend on it.
                "cache_prompt": temperature > 0,
            }
            return await self.link.post("/completion", body, _read_trace)


def _read_trace(answer: Any) -> Generation:
    stop = answer["stop_type"]
    if stop not in ("eos", "limit", "word"):
        raise ValueError(f"the generation ended by {stop!r}")
    return Generation(str(answer["content"]), hit_limit=stop == "limit")
