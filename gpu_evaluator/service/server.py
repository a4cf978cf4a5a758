"""The evaluator as a process: uvicorn, and a shutdown that drains first."""

from __future__ import annotations

from gpu_evaluator.catalog import make_pairs
from gpu_evaluator.evaluator import Evaluator
from gpu_evaluator.service.app import create_app
from services.runtime.serving import DrainingServer, serve, server_config
from services.runtime.settings import Settings


def make_server(evaluator: Evaluator, settings: Settings) -> DrainingServer:
    """A server for the settings' host and port, not started yet. Raises `KeysError`."""
    own = settings.evaluator
    config = server_config(create_app(evaluator, own), own.host, own.port)
    return DrainingServer(config, "evaluator", lambda: evaluator.drain(own.drain_s))


def run(settings: Settings) -> None:
    """Serve until a signal.

    Raises `SettingsError` when the settings do not suffice; exits with status 2 when the port cannot be taken.
    """
    server = make_server(Evaluator(make_pairs(settings), settings.evaluator), settings)
    serve(server, "evaluator", settings.evaluator.host, settings.evaluator.port)
