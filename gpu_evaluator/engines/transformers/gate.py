"""A classifier behind the gate's interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_evaluator.engines.base import EngineFault, GateAnswer, ModelIdentity

if TYPE_CHECKING:
    from gpu_evaluator.engines.transformers.classifier import Classifier

_STEP = 16  # programs between two looks at whether anybody still wants them


class TransformersGate:
    """Scores programs in this process, on one thread of their own."""

    def __init__(self, folder: Path, toolchain: str | None, *, context: int, batch_tokens: int) -> None:
        self.identity = ModelIdentity(folder.name, toolchain)
        self._folder, self._context, self._batch_tokens = folder, context, batch_tokens
        self._thread = ThreadPoolExecutor(1, "gate")
        self._classifier: Classifier | None = None

    async def start(self) -> None:
        self._classifier = await asyncio.get_running_loop().run_in_executor(self._thread, self._load)

    async def score(self, programs: Sequence[str], *, priority: int = 0) -> AsyncIterator[tuple[int, GateAnswer]]:
        for start in range(0, len(programs), _STEP):
            if self._classifier is None:
                raise EngineFault("the model is not loaded")
            step = programs[start : start + _STEP]
            scores = await asyncio.get_running_loop().run_in_executor(self._thread, self._classifier.score, step)
            for offset, score in enumerate(scores):
                yield start + offset, score

    async def healthy(self) -> bool:
        return self._classifier is not None

    async def stop(self) -> None:
        self._classifier = None

    def _load(self) -> Classifier:
        from gpu_evaluator.engines.transformers.classifier import Classifier

        return Classifier(self._folder, context=self._context, batch_tokens=self._batch_tokens)
