"""The outermost layer of an HTTP server of ours: every request has an id, every error becomes a problem document."""

from __future__ import annotations

import secrets

import structlog
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.contracts.problems import ProblemCode
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.problems import ProblemError

_ID_HEADER = b"x-request-id"


class Edge:
    """ASGI middleware. The id is `scope["state"]["request_id"]`, in the logs, and in `X-Request-Id`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", ()), (_ID_HEADER, request_id.encode())]
            await send(message)

        with structlog.contextvars.bound_contextvars(request=request_id):
            try:
                await self._app(scope, receive, send_with_id)
            except ClientDisconnect:
                metrics.DISCONNECTS.inc()
            except Exception:
                get_logger().exception("request_failed", path=scope["path"])
                if started:  # nothing sensible can follow half an answer; the server closes the connection
                    raise
                error = ProblemError(ProblemCode.INTERNAL_ERROR, "the log has more under this instance")
                await _problem(error, request_id)(scope, receive, send_with_id)


def install_error_handlers(app: FastAPI) -> None:
    """Turn `ProblemError` and the framework's own errors into problem documents."""

    async def on_problem(request: Request, error: Exception) -> Response:
        if not isinstance(error, ProblemError):
            raise error
        return _problem(error, request.state.request_id)

    async def on_http(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        codes = {404: ProblemCode.NOT_FOUND, 405: ProblemCode.METHOD_NOT_ALLOWED}
        code = codes.get(error.status_code, ProblemCode.INTERNAL_ERROR)
        detail = {404: "no such route", 405: f"not {request.method} here"}.get(error.status_code, str(error.detail))
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = ", ".join(_methods(app, request.scope))
        return _problem(ProblemError(code, detail, headers=headers), request.state.request_id)

    app.add_exception_handler(ProblemError, on_problem)
    app.add_exception_handler(HTTPException, on_http)


def _methods(app: FastAPI, scope: Scope) -> list[str]:
    """Of all routes with the path of a request: the framework itself tells those of the first alone."""
    here = [route for route in app.routes if route.matches(scope)[0] is not Match.NONE]
    return sorted(set().union(*(getattr(route, "methods", None) or () for route in here)))


def _problem(error: ProblemError, request_id: str) -> Response:
    metrics.PROBLEMS.labels(error.code.value).inc()
    get_logger().info("request_refused", code=error.code.value, detail=error.detail)
    return error.response(request_id)
