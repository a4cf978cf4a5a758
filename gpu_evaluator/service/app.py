"""The application factory and its routes."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Callable

import structlog
from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpu_evaluator.evaluator import Evaluator, TooMuchInFlight
from gpu_evaluator.service.body import read_request
from gpu_evaluator.service.problems import Refusal
from gpu_evaluator.service.stream import PredictionStream
from services.contracts.health import Health
from services.contracts.problems import ProblemCode
from services.runtime import metrics
from services.runtime.auth import ApiKeys
from services.runtime.logging import get_logger
from services.runtime.settings import EvaluatorSettings
from services.runtime.tracing import TracedRequests

_RETRY_S = 5


def create_app(evaluator: Evaluator, settings: EvaluatorSettings) -> FastAPI:
    """The HTTP server over `evaluator`, which starts and stops with the application's lifespan.

    Raises `services.runtime.auth.KeysError`.
    """
    keys = ApiKeys.parse(settings.keys.get_secret_value())

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await evaluator.start()
        try:
            yield
        finally:
            await evaluator.stop()

    app = FastAPI(title="lean-reward evaluator", lifespan=lifespan, openapi_url=None, redirect_slashes=False)
    app.add_middleware(_Edge)
    app.add_middleware(TracedRequests)
    app.add_exception_handler(Refusal, _on_refusal)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_api_route("/v1/evaluate", _evaluate(evaluator, keys, settings), methods=["POST"], response_model=None)
    app.add_api_route("/healthz", _healthz, methods=["GET"], response_model=None)
    app.add_api_route("/readyz", _readyz(evaluator), methods=["GET"], response_model=None)
    app.add_api_route("/metrics", _metrics, methods=["GET"], response_model=None)
    return app


def _evaluate(evaluator: Evaluator, keys: ApiKeys, settings: EvaluatorSettings) -> Callable[..., object]:
    async def evaluate(request: Request) -> Response:
        received = time.monotonic()
        _check_key(keys, request)
        readiness = evaluator.readiness()
        if evaluator.draining:
            raise Refusal(ProblemCode.SHUTTING_DOWN, "this evaluator is shutting down", retry_after_s=_RETRY_S)
        if readiness.missing:
            detail = "; ".join(part.detail for part in readiness.missing)
            raise Refusal(ProblemCode.EVALUATOR_UNAVAILABLE, detail, missing=readiness.missing, retry_after_s=_RETRY_S)
        parsed = await read_request(request, max_bytes=settings.max_body_bytes, timeout_s=settings.body_timeout_s)
        if not evaluator.can(parsed.method):
            raise Refusal(ProblemCode.EVALUATOR_NOT_CONFIGURED, "this evaluator has no feedback model; ask for `gate`")
        held = contextlib.ExitStack()
        try:
            held.enter_context(evaluator.admit(len(parsed.programs)))
        except TooMuchInFlight as error:
            raise Refusal(ProblemCode.TOO_MUCH_IN_FLIGHT, str(error), retry_after_s=error.retry_after_s) from None
        return PredictionStream(evaluator.evaluate(parsed, received), held, demonstration=readiness.gate.demonstration)

    return evaluate


async def _healthz(request: Request) -> Response:
    return Response(Health().model_dump_json(), media_type="application/json")


def _readyz(evaluator: Evaluator) -> Callable[..., object]:
    async def readyz(request: Request) -> Response:
        readiness = evaluator.readiness()
        status = 200 if readiness.status == "ready" else 503
        return Response(readiness.model_dump_json(), status_code=status, media_type="application/json")

    return readyz


async def _metrics(request: Request) -> Response:
    return Response(generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _check_key(keys: ApiKeys, request: Request) -> None:
    given = request.headers.get("authorization")
    if keys.identify(given) is None:
        detail = "invalid API key" if given else "missing API key"
        raise Refusal(ProblemCode.UNAUTHENTICATED, detail, headers={"WWW-Authenticate": "Bearer"})


class _Edge:
    """The outermost layer: an id for each request, and a problem document for each defect of ours."""

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
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        with structlog.contextvars.bound_contextvars(request=request_id):
            try:
                await self._app(scope, receive, send_with_id)
            except ClientDisconnect:
                metrics.DISCONNECTS.inc()
            except Exception:
                get_logger().exception("request_failed", path=scope["path"])
                if started:  # half an answer: the server closes the connection, and the reader misses predictions
                    raise
                refusal = Refusal(ProblemCode.INTERNAL_ERROR, "the log has more under this instance")
                await _refuse(refusal, request_id)(scope, receive, send_with_id)


async def _on_refusal(request: Request, error: Exception) -> Response:
    if not isinstance(error, Refusal):
        raise error
    return _refuse(error, request.state.request_id)


async def _on_http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    codes = {404: ProblemCode.NOT_FOUND, 405: ProblemCode.METHOD_NOT_ALLOWED}
    code = codes.get(error.status_code, ProblemCode.INTERNAL_ERROR)
    return _refuse(Refusal(code, code.summary, headers=error.headers), request.state.request_id)


def _refuse(refusal: Refusal, request_id: str) -> Response:
    metrics.PROBLEMS.labels(refusal.code.value).inc()
    get_logger().info("request_refused", code=refusal.code.value, detail=refusal.detail)
    return refusal.response(request_id)
