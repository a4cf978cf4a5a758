"""Engines without a model that do what a test tells them: the only way to meet a given fault at a given moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from gpu_evaluator.engines.base import EngineFault, FeedbackAnswer, GateAnswer, Generation, ModelIdentity, Sampling
from gpu_evaluator.pool import Pair, Pool, Stage, Swap

ERROR = "/- <feedback>\n-- type: error, msg: unsolved goals\n</feedback> -/"


def by_name(program: str) -> float:
    """`bad` in the program: the gate rejects it."""
    return 0.1 if "bad" in program else 0.9


def copy(program: str, sampling: Sampling) -> FeedbackAnswer:
    """`wrong` in the program: each trace ends in an error."""
    text = f"{program}\n{ERROR}" if "wrong" in program else program
    return (Generation(text, hit_limit=False),) * sampling.samples


@dataclass
class ScriptedGate:
    answer: Callable[[str], GateAnswer] = by_name
    dies_after: int | None = None  # answers after which the stream raises
    ends_after: int | None = None  # answers after which the stream just ends
    delay_s: float = 0.0
    seen: list[str] = field(default_factory=list)
    chunks: list[int] = field(default_factory=list)
    priorities: list[int] = field(default_factory=list)
    aborted: int = 0
    starts: int = 0
    alive: bool = False
    broken: bool = False  # it does not start
    log: list[str] = field(default_factory=list)
    name: str = "gate"

    @property
    def identity(self) -> ModelIdentity:
        return ModelIdentity(self.name, "4.15.0")

    async def start(self) -> None:
        if self.broken:
            raise EngineFault("it does not start")
        self.starts += 1
        self.alive = True
        self.log.append(f"{self.name} starts")

    async def healthy(self) -> bool:
        return self.alive

    async def stop(self) -> None:
        if self.alive:
            self.log.append(f"{self.name} stops")
        self.alive = False

    async def score(self, programs: Sequence[str], *, priority: int = 0) -> AsyncIterator[tuple[int, GateAnswer]]:
        self.chunks.append(len(programs))
        self.priorities.append(priority)
        try:
            for index, program in enumerate(programs):
                if index == self.dies_after:
                    self.alive = False
                    raise EngineFault("connection reset")
                if index == self.ends_after:
                    return
                await asyncio.sleep(self.delay_s)
                self.seen.append(program)
                yield index, self.answer(program)
        except (asyncio.CancelledError, GeneratorExit):
            self.aborted += 1
            raise


@dataclass
class ScriptedFeedback(ScriptedGate):
    write: Callable[[str, Sampling], FeedbackAnswer] = copy
    name: str = "feedback"

    async def annotate(
        self, programs: Sequence[str], sampling: Sampling, *, priority: int = 0
    ) -> AsyncIterator[tuple[int, FeedbackAnswer]]:
        async for index, _ in self.score(programs, priority=priority):
            yield index, self.write(programs[index], sampling)


def make_pair(
    name: str = "p",
    gate: ScriptedGate | None = None,
    feedback: ScriptedFeedback | None = None,
    *,
    room: int = 1_000_000,
    swap: Swap | None = None,
) -> Pair:
    """A pair whose engines count as up already."""
    up = dict.fromkeys(Stage, True)
    rooms = dict.fromkeys(Stage, room)
    return Pair(name, gate or ScriptedGate(), feedback or ScriptedFeedback(), rooms, swap=swap, up=up)


def make_pool(*pairs: Pair, longest_turn_s: float = 60.0) -> Pool:
    return Pool(pairs, longest_turn_s=longest_turn_s)
