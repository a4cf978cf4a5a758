"""A queue and a Lean worker on this machine, for commands that are given no queue."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import AsyncIterator

from services.queue.server import EmbeddedServer
from services.runtime.settings import Settings

_STOP_S = 15.0


class WorkerEnded(Exception):
    """The worker cannot run; its own log says why."""


@contextlib.asynccontextmanager
async def queue_url(settings: Settings, workers: int | None) -> AsyncIterator[str]:
    """The settings' queue; or one of our own with a worker process of so many engines (None: one a core)."""
    if settings.queue.url is not None:
        yield settings.queue.url.get_secret_value()
        return
    with EmbeddedServer() as server:
        environment = {**os.environ, "LEAN_REWARD_QUEUE_URL": server.url}
        if workers is not None:
            environment["LEAN_REWARD_WORKER_COUNT"] = str(workers)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "services.runtime.cli",
            "lean-worker",
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
        try:
            yield server.url
        finally:
            if process.returncode is None:
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), _STOP_S)
            except asyncio.TimeoutError:
                process.kill()
                await process.wait()


def _die_with_parent() -> None:
    """In the child, before exec: have the kernel send SIGTERM when this process dies (Linux only)."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
