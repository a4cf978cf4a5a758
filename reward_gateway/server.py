"""The gateway as a process: uvicorn, and a shutdown that drains first."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
from types import FrameType

import uvicorn
from fastapi import FastAPI

from reward_gateway.app import create_app
from reward_gateway.connections import ConnectionLimits, guarded
from reward_gateway.gateway import Gateway
from services.runtime.logging import get_logger
from services.runtime.settings import Settings

_CLOSE_S = 2
_KEEP_ALIVE_S = 75


class DrainingServer(uvicorn.Server):
    """SIGTERM or SIGINT: `/readyz` turns 503 and new batches are refused while running ones end; then it stops.

    A second signal stops at once.
    """

    def __init__(self, config: uvicorn.Config, gateway: Gateway, drain_s: float) -> None:
        super().__init__(config)
        self._gateway = gateway
        self._drain_s = drain_s
        self._draining: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._draining is not None:
            super().handle_exit(sig, frame)
            return
        get_logger().info("gateway_drains", signal=signal.Signals(sig).name)
        self._draining = asyncio.get_running_loop().create_task(self._drain())  # seen at uvicorn's next tick, 0.1 s

    async def _drain(self) -> None:
        try:
            await self._gateway.drain(self._drain_s)
        finally:
            self.should_exit = True


def make_server(app: FastAPI, settings: Settings) -> DrainingServer:
    """A server for the settings' host and port, not started yet."""
    return DrainingServer(make_config(app, settings), app.state.gateway, settings.gateway.drain_s)


def make_config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """How uvicorn serves the application."""
    gateway = settings.gateway
    limits = ConnectionLimits(
        head_s=gateway.head_timeout_s,
        refused_s=gateway.body_timeout_s,
        read_s=gateway.slow_reader_s,
        connections=gateway.max_connections,
    )
    return uvicorn.Config(
        app,
        http=guarded(limits),
        host=settings.gateway.host,
        port=settings.gateway.port,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_CLOSE_S,
    )


def _raise_file_limit() -> None:
    """A connection is an open file, and the usual limit of 1,024 is for programs that would use select."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def run(settings: Settings) -> None:
    """Serve until a signal. Raises `SettingsError`; exits with status 2 when the port cannot be taken."""
    _raise_file_limit()
    server = make_server(create_app(settings), settings)
    get_logger().info("gateway_starts", host=settings.gateway.host, port=settings.gateway.port)
    server.run()
    if not server.started:
        raise SystemExit(2)
    get_logger().info("gateway_stopped")
