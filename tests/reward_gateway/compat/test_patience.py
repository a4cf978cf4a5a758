"""Waiting on behalf of a caller who may hang up."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from reward_gateway.compat.patience import unless_gone


async def hung_up() -> Message:
    return {"type": "http.disconnect"}


async def test_a_hang_up_ends_all_work_and_leaves_no_error_that_nobody_saw() -> None:
    unseen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    ended: list[int] = []

    async def work(number: int) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(number)

    with pytest.raises(ClientDisconnect):
        await unless_gone(Request({"type": "http"}, hung_up), asyncio.gather(*map(work, range(3))))
    gc.collect()
    await asyncio.sleep(0)
    assert sorted(ended) == [0, 1, 2] or ended == []  # those that had begun
    assert unseen == []
