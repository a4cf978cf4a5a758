"""The application factory."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI

from reward_gateway.answers.sending import Sending
from reward_gateway.compat.joiner import Joiner
from reward_gateway.gateway import Gateway
from reward_gateway.openapi import build_document
from reward_gateway.routes.table import OPERATIONS
from services.runtime.edge import Edge, install_error_handlers
from services.runtime.settings import Settings
from services.runtime.tracing import TracedRequests


def create_app(settings: Settings) -> FastAPI:
    """The whole HTTP server as an ASGI application; its parts start and stop with the application's lifespan.

    Raises `SettingsError` when the settings do not suffice.
    """
    gateway = Gateway(settings)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await gateway.start()
        try:
            yield
        finally:
            await gateway.stop()

    app = FastAPI(
        title="lean-reward", lifespan=lifespan, openapi_url="/openapi.json", redoc_url=None, redirect_slashes=False
    )
    app.state.gateway = gateway
    app.state.compat = settings.compat
    app.state.joiner = Joiner(settings.compat, gateway.batches)
    app.add_middleware(Sending, budget=gateway.budget)
    app.add_middleware(Edge)
    app.add_middleware(TracedRequests)
    install_error_handlers(app)
    for operation in OPERATIONS:
        app.add_api_route(
            operation.path, operation.handler, methods=[operation.method], include_in_schema=False, response_model=None
        )
    document: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not document:
            document.update(build_document())
        return document

    app.openapi = openapi  # type: ignore[method-assign]
    return app
