"""Long loops on the event loop that let others run."""

from __future__ import annotations

import asyncio
import time


class Pace:
    """Yields to the event loop whenever a slice of `slice_s` seconds is used up.

    Call `rest` between small pieces of work; it costs a clock reading when the slice is not used up.
    """

    __slots__ = ("_slice_s", "_until")

    def __init__(self, slice_s: float = 0.003) -> None:
        self._slice_s = slice_s
        self._until = time.perf_counter() + slice_s

    async def rest(self) -> None:
        if time.perf_counter() >= self._until:
            await asyncio.sleep(0)
            self._until = time.perf_counter() + self._slice_s
