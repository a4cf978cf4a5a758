"""Which engine the settings ask for."""

from __future__ import annotations

from lean_worker.engines.base import Engine, EngineUnavailable
from lean_worker.engines.embedded.layout import Installation, default_root
from services.runtime.settings import Settings


def make_engine(settings: Settings) -> Engine:
    """An engine that is not started yet. Raises `EngineUnavailable` when it never could be."""
    if settings.worker.engine == "embedded":
        return embedded_engine(embedded_installation(settings))
    from lean_worker.engines.repl.engine import ReplEngine
    from lean_worker.sandbox import SandboxUnavailable, choose

    if settings.repl.folder is None:
        raise EngineUnavailable("no Lean REPL: set LEAN_REWARD_REPL_FOLDER to the folder of a built one")
    try:
        choose(settings.repl.sandbox)
    except SandboxUnavailable as error:
        raise EngineUnavailable(str(error)) from error
    return ReplEngine(settings.repl)


def embedded_installation(settings: Settings) -> Installation:
    """Where the embedded Lean is, or is to be, installed."""
    return Installation(settings.lean.home.expanduser().absolute() if settings.lean.home else default_root())


def embedded_engine(installation: Installation) -> Engine:
    """The embedded Lean. Raises `EngineUnavailable` when it is not installed."""
    from lean_worker.engines.embedded.engine import EmbeddedEngine

    installation.require()
    return EmbeddedEngine(installation)
