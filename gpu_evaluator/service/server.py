"""The evaluator as a process: uvicorn, and a shutdown that drains first."""

from __future__ import annotations

import asyncio
import signal
from types import FrameType

import uvicorn

from gpu_evaluator.catalog import make_pairs
from gpu_evaluator.evaluator import Evaluator
from gpu_evaluator.service.app import create_app
from services.runtime.logging import get_logger
from services.runtime.settings import Settings

_CLOSE_S = 2
_KEEP_ALIVE_S = 75


class DrainingServer(uvicorn.Server):
    """SIGTERM or SIGINT: new requests are refused while running ones end; then it stops. A second one stops at once."""

    def __init__(self, config: uvicorn.Config, evaluator: Evaluator, drain_s: float) -> None:
        super().__init__(config)
        self._evaluator = evaluator
        self._drain_s = drain_s
        self._draining: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._draining is not None:
            super().handle_exit(sig, frame)
            return
        get_logger().info("evaluator_drains", signal=signal.Signals(sig).name)
        self._draining = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        try:
            await self._evaluator.drain(self._drain_s)
        finally:
            self.should_exit = True


def make_server(evaluator: Evaluator, settings: Settings) -> DrainingServer:
    """A server for the settings' host and port, not started yet. Raises `KeysError`."""
    config = uvicorn.Config(
        create_app(evaluator, settings.evaluator),
        host=settings.evaluator.host,
        port=settings.evaluator.port,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_CLOSE_S,
    )
    return DrainingServer(config, evaluator, settings.evaluator.drain_s)


def run(settings: Settings) -> None:
    """Serve until a signal.

    Raises `SettingsError` when the settings do not suffice; exits with status 2 when the port cannot be taken.
    """
    server = make_server(Evaluator(make_pairs(settings), settings.evaluator), settings)
    get_logger().info("evaluator_starts", host=settings.evaluator.host, port=settings.evaluator.port)
    server.run()
    if not server.started:
        raise SystemExit(2)
    get_logger().info("evaluator_stopped")
