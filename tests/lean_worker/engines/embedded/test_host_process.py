"""A host that ends while it owes an answer; a process that only sleeps stands for it, Lean has no part in this."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from typing import Any

from lean_worker.engines.embedded.process import HostProcess


async def test_the_end_of_a_host_that_nobody_asks_any_more_is_no_lost_exception() -> None:
    lost: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: lost.append(context))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import time; time.sleep(600)",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    host = HostProcess(process)
    asked = asyncio.create_task(host.check({}))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asked.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asked
    host.end()
    await host.ended()
    assert host._answering is not None
    await asyncio.wait({host._answering})
    del asked, host  # as where the killing was cancelled, too
    gc.collect()
    await asyncio.sleep(0)
    assert lost == []
