"""The application factory and its routes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable

from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from gpu_evaluator.evaluator import Evaluator, TooMuchInFlight
from gpu_evaluator.service.body import read_request
from gpu_evaluator.service.stream import PredictionStream
from services.contracts.health import Health
from services.contracts.problems import ProblemCode
from services.runtime.auth import ApiKeys
from services.runtime.edge import Edge, install_error_handlers
from services.runtime.problems import ProblemError
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
    app.add_middleware(Edge)
    app.add_middleware(TracedRequests)
    install_error_handlers(app)
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
            raise ProblemError(ProblemCode.SHUTTING_DOWN, "this evaluator is shutting down", retry_after_s=_RETRY_S)
        if readiness.missing:
            detail = "; ".join(part.detail for part in readiness.missing)
            raise ProblemError(
                ProblemCode.EVALUATOR_UNAVAILABLE, detail, missing=readiness.missing, retry_after_s=_RETRY_S
            )
        parsed = await read_request(request, max_bytes=settings.max_body_bytes, timeout_s=settings.body_timeout_s)
        if not evaluator.can(parsed.method):
            raise ProblemError(
                ProblemCode.EVALUATOR_NOT_CONFIGURED, "this evaluator has no feedback model; ask for `gate`"
            )
        held = contextlib.ExitStack()
        try:
            held.enter_context(evaluator.admit(len(parsed.programs)))
        except TooMuchInFlight as error:
            raise ProblemError(ProblemCode.TOO_MUCH_IN_FLIGHT, str(error), retry_after_s=error.retry_after_s) from None
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
        raise ProblemError(ProblemCode.UNAUTHENTICATED, detail, headers={"WWW-Authenticate": "Bearer"})
