"""The feedback model of an evaluator that has none: its gate decides alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from gpu_evaluator.engines.base import EngineFault, FeedbackAnswer, ModelIdentity, Sampling


class NoFeedback:
    """Always up, and never asked, because the service refuses the methods that would."""

    identity = ModelIdentity("none")

    async def start(self) -> None:
        """Nothing to load."""

    async def annotate(
        self, programs: Sequence[str], sampling: Sampling, *, priority: int = 0
    ) -> AsyncIterator[tuple[int, FeedbackAnswer]]:
        for index in range(len(programs)):
            yield index, EngineFault("this evaluator has no feedback model")

    async def healthy(self) -> bool:
        return True

    async def stop(self) -> None:
        """Nothing to unload."""
