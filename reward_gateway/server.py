"""The gateway as a process: uvicorn, and a shutdown that drains first."""

from __future__ import annotations

import contextlib
import resource

import uvicorn
from fastapi import FastAPI

from reward_gateway.app import create_app
from reward_gateway.connections import ConnectionLimits, guarded
from reward_gateway.gateway import Gateway
from services.runtime.serving import DrainingServer, serve, server_config
from services.runtime.settings import Settings


def make_server(app: FastAPI, settings: Settings) -> DrainingServer:
    """A server for the settings' host and port, not started yet. While it drains `/readyz` is 503."""
    gateway: Gateway = app.state.gateway
    return DrainingServer(make_config(app, settings), "gateway", lambda: gateway.drain(settings.gateway.drain_s))


def make_config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """How uvicorn serves the application."""
    gateway = settings.gateway
    limits = ConnectionLimits(
        head_s=gateway.head_timeout_s,
        refused_s=gateway.body_timeout_s,
        read_s=gateway.slow_reader_s,
        connections=gateway.max_connections,
    )
    return server_config(app, gateway.host, gateway.port, http=guarded(limits))


def _raise_file_limit() -> None:
    """A connection is an open file, and the usual limit of 1,024 is for programs that would use select."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def run(settings: Settings) -> None:
    """Serve until a signal. Raises `SettingsError`; exits with status 2 when the port cannot be taken."""
    _raise_file_limit()
    serve(make_server(create_app(settings), settings), "gateway", settings.gateway.host, settings.gateway.port)
