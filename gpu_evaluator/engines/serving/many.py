"""Several programs at a time, each answer as soon as it is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from gpu_evaluator.engines.base import EngineFault
from services.runtime.logging import get_logger

_Answer = TypeVar("_Answer")


async def each(
    programs: Sequence[str], ask: Callable[[str], Awaitable[_Answer]]
) -> AsyncGenerator[tuple[int, _Answer | EngineFault], None]:
    """Ask about all programs at once; an `EngineFault` is that program's answer. Closing cancels what still runs."""
    answers: asyncio.Queue[tuple[int, _Answer | EngineFault]] = asyncio.Queue()

    async def one(index: int) -> None:
        try:
            answers.put_nowait((index, await ask(programs[index])))
        except EngineFault as fault:
            answers.put_nowait((index, fault))

        except Exception as defect:
            get_logger().exception("engine_defect")
            answers.put_nowait((index, EngineFault(f"a defect of ours: {defect!r}")))

    tasks = [asyncio.create_task(one(index)) for index in range(len(programs))]
    try:
        for _ in programs:
            yield await answers.get()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def together(calls: Sequence[Coroutine[Any, Any, _Answer]]) -> tuple[_Answer, ...]:
    """All answers, or the first error, and then nothing is left running."""
    tasks = [asyncio.create_task(call) for call in calls]
    try:
        return tuple(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
