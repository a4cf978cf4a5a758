"""`GET /healthz` and `GET /readyz`: is the process alive, and can it score now."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.operations import Answer, Operation
from reward_gateway.routes.context import gateway_of
from services.contracts.health import Health, Readiness


async def healthz(request: Request) -> Response:
    return Response(Health().model_dump_json(), media_type="application/json")


async def readyz(request: Request) -> Response:
    readiness = await gateway_of(request).readiness()
    status = 200 if readiness.status == "ready" else 503
    return Response(readiness.model_dump_json(), status_code=status, media_type="application/json")


_NOT_READY = {
    "status": "not_ready",
    "missing": [{"component": "lean", "detail": "no engine is warm yet"}],
    "warnings": [],
    "lean": {"workers": 1, "engines": 2, "ready": 0, "identities": []},
}

OPERATIONS = (
    Operation(
        "GET",
        "/healthz",
        "operation",
        "The process is alive",
        healthz,
        answers={200: (Answer("Alive.", Health),)},
        key=False,
    ),
    Operation(
        "GET",
        "/readyz",
        "operation",
        "The server can score now, or what is missing",
        readyz,
        answers={
            200: (Answer("Ready.", Readiness),),
            503: (Answer("Not ready.", Readiness, example=_NOT_READY),),
        },
        key=False,
    ),
    # Balancers ask for the head alone.
    Operation(
        "HEAD",
        "/healthz",
        "operation",
        "The process is alive",
        healthz,
        answers={200: (Answer("Alive.", media_type=""),)},
        key=False,
    ),
    Operation(
        "HEAD",
        "/readyz",
        "operation",
        "The server can score now",
        readyz,
        answers={200: (Answer("Ready.", media_type=""),), 503: (Answer("Not ready.", media_type=""),)},
        key=False,
    ),
)
