"""A limit of time that loses neither the limit nor a cancellation."""

from __future__ import annotations

import asyncio

import pytest

from services.runtime.within import within


@pytest.mark.parametrize("turns", range(4))
async def test_a_cancellation_that_comes_with_the_result_ends_a_loop(turns: int) -> None:
    event = asyncio.Event()

    async def turn_for_ever() -> None:
        while True:
            async with within(5):
                await event.wait()
            event.clear()

    looping = asyncio.create_task(turn_for_ever())
    await asyncio.sleep(0)
    event.set()
    for _ in range(turns):  # the result is on its way
        await asyncio.sleep(0)
    looping.cancel()
    done, _ = await asyncio.wait({looping}, timeout=1)
    assert done
    assert looping.cancelled()


async def test_what_takes_too_long_is_a_timeout_and_no_limit_is_none() -> None:
    with pytest.raises(asyncio.TimeoutError):
        async with within(0.01):
            await asyncio.sleep(5)
    async with within(None):
        await asyncio.sleep(0)
