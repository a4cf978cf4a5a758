"""Waiting on behalf of callers who would only come back: until there is room, or until they are gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from reward_gateway.batches.batch import Batch
from services.contracts.problems import ProblemCode
from services.runtime.problems import ProblemError

_Value = TypeVar("_Value")

PASSING = frozenset(
    {
        ProblemCode.TOO_MUCH_IN_FLIGHT,
        ProblemCode.QUEUE_FULL,
        ProblemCode.QUOTA_EXCEEDED,
        ProblemCode.QUEUE_UNAVAILABLE,
        ProblemCode.LEAN_UNAVAILABLE,
        ProblemCode.EVALUATOR_UNAVAILABLE,
    }
)
"""Problems that may pass while a caller waits. (A server that shuts down does not come back on this connection.)"""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 5.0


async def answered(
    start: Callable[[], Batch], leave: Callable[[Batch], None], *, until: float, admission_until: float
) -> Batch:
    """Start a batch and wait for its answer, again and again while only passing problems are in the way.

    Times are on the monotonic clock: it is started for the last time before `admission_until`, and its own deadline is
    expected to end it by `until`. Raises `ProblemError`: what was in the way at last.
    """
    pause = _FIRST_PAUSE_S
    while True:
        try:
            batch = start()
            try:
                await asyncio.wait_for(asyncio.shield(batch.answer), max(0.0, until - time.monotonic()))
                return batch
            finally:
                leave(batch)
        except asyncio.TimeoutError:
            raise ProblemError(ProblemCode.INTERNAL_ERROR, "the batch did not end at its deadline") from None
        except ProblemError as error:
            wait_s = min(max(pause, error.retry_after_s or 0.0), _LONGEST_PAUSE_S)
            if error.code not in PASSING or time.monotonic() + wait_s >= admission_until:
                raise
            await asyncio.sleep(wait_s)
            pause *= 2


async def unless_gone(request: Request, awaited: Awaitable[_Value]) -> _Value:
    """The result of `awaited`, which is cancelled as soon as the client hangs up: then raises `ClientDisconnect`."""
    working = asyncio.ensure_future(awaited)
    gone = asyncio.create_task(_hung_up(request))
    waited: set[asyncio.Future[Any]] = {working, gone}
    try:
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        gone.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working})
            if not working.cancelled():
                working.exception()  # seen: nobody is left to be told


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
