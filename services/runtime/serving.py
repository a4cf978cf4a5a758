"""An HTTP server of ours as a process: uvicorn, and a shutdown that drains first."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from services.runtime.logging import get_logger

_CLOSE_S = 2
_KEEP_ALIVE_S = 75


class DrainingServer(uvicorn.Server):
    """SIGTERM or SIGINT: new work is refused while running work ends; then it stops. A second signal stops at once.

    `drain` is called once and returns when nothing runs any more, within the time that it gives itself. `name` stands
    in the log.
    """

    def __init__(self, config: uvicorn.Config, name: str, drain: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._name = name
        self._drain = drain
        self._draining: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._draining is not None:
            super().handle_exit(sig, frame)
            return
        get_logger().info(f"{self._name}_drains", signal=signal.Signals(sig).name)
        # Seen at uvicorn's next tick, 0.1 s.
        self._draining = asyncio.get_running_loop().create_task(self._drain_and_exit())

    async def _drain_and_exit(self) -> None:
        try:
            await self._drain()
        finally:
            self.should_exit = True


def server_config(app: ASGIApp, host: str, port: int, **options: Any) -> uvicorn.Config:
    """How uvicorn serves an application of ours; `options` are more of uvicorn's."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_CLOSE_S,
        **options,
    )


def serve(server: DrainingServer, name: str, host: str, port: int) -> None:
    """Serve until a signal. Exits with status 2 when the port cannot be taken."""
    get_logger().info(f"{name}_starts", host=host, port=port)
    server.run()
    if not server.started:
        raise SystemExit(2)
    get_logger().info(f"{name}_stopped")
