"""What an evaluator engine is: something that scores programs, or annotates them.

Programs are raw text, no chat template; feedback blocks and validity tags have been stripped before. Both methods
yield an answer as soon as it is ready, in any order; closing the generator aborts what is still running.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol


class EngineFault(Exception):
    """The engine failed on a program, or as a whole: our fault, so the program gets no prediction from it."""


class OverLength(Exception):
    """The program does not fit the model. The gate keeps head and tail instead; the feedback model rejects."""


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What a prediction came from. `toolchain` is the Lean that the model was trained to predict, if it says so."""

    name: str
    toolchain: str | None = None
    demonstration: bool = False


@dataclass(frozen=True, slots=True)
class Generation:
    """One generated trace. `hit_limit`: it was cut at the output limit instead of ending by itself."""

    text: str
    hit_limit: bool


@dataclass(frozen=True, slots=True)
class Sampling:
    """How traces are drawn: one greedy trace, or several at a temperature."""

    samples: int = 1
    temperature: float = 0.0


GateAnswer = float | EngineFault
"""P(valid) in [0, 1], normalised over the two labels; or why there is none."""

FeedbackAnswer = tuple[Generation, ...] | EngineFault | OverLength


class Gate(Protocol):
    """Scores programs with one forward pass each (learning-lean-feedback, Section 4.1)."""

    @property
    def identity(self) -> ModelIdentity: ...

    async def start(self) -> None:
        """Load the model and check its labels. Raises `EngineFault`."""
        ...

    def score(self, programs: Sequence[str], *, priority: int = 0) -> AsyncIterator[tuple[int, GateAnswer]]:
        """Yield (index of the program, answer) for each program exactly once."""
        ...

    async def healthy(self) -> bool: ...

    async def stop(self) -> None: ...


class FeedbackModel(Protocol):
    """Writes feedback traces (learning-lean-feedback, Section 4.2)."""

    @property
    def identity(self) -> ModelIdentity: ...

    async def start(self) -> None:
        """Load the model. Raises `EngineFault`."""
        ...

    def annotate(
        self, programs: Sequence[str], sampling: Sampling, *, priority: int = 0
    ) -> AsyncIterator[tuple[int, FeedbackAnswer]]:
        """Yield (index of the program, its `sampling.samples` traces) for each program exactly once."""
        ...

    async def healthy(self) -> bool: ...

    async def stop(self) -> None: ...
