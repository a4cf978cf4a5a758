"""`GET /`: the page that shows what the gateway does, and `GET /v1/live`: what it shows, once or as events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from reward_gateway.live.view import look
from reward_gateway.operations import Answer, Operation
from reward_gateway.routes.compat.kimina import health
from reward_gateway.routes.context import gateway_of, owner_of
from services.contracts.compat import KiminaHealth
from services.contracts.live import LiveView

_EVERY_S = 1.0
_PAGE = (files("reward_gateway.live") / "page.html").read_text("utf-8")
_ITS_OWN_ONLY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


async def root(request: Request) -> Response:
    """The page for a browser; for programs that know Kimina's server, which answers here too, its health."""
    if "text/html" not in request.headers.get("accept", ""):
        return await health(request)
    headers = {
        "Content-Security-Policy": _ITS_OWN_ONLY,
        "Vary": "Accept",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(_PAGE, media_type="text/html", headers=headers)


async def live(request: Request) -> Response:
    owner_of(request)
    if "text/event-stream" in request.headers.get("accept", ""):
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(_events(request), media_type="text/event-stream", headers=headers)
    return Response((await look(gateway_of(request))).model_dump_json(), media_type="application/json")


async def _events(request: Request) -> AsyncIterator[bytes]:
    gateway = gateway_of(request)
    while not gateway.batches.draining:
        yield b"data: %s\n\n" % (await look(gateway)).model_dump_json().encode()
        await asyncio.sleep(_EVERY_S)


OPERATIONS = (
    Operation(
        "GET",
        "/",
        "operation",
        "Kimina's health route; for a browser, a page that shows what the gateway does now",
        root,
        description="With `Accept: text/html`, a page that follows `/v1/live`.",
        answers={200: (Answer("Alive.", KiminaHealth),)},
        key=False,
    ),
    Operation(
        "GET",
        "/v1/live",
        "operation",
        "What the gateway does now",
        live,
        description="With `Accept: text/event-stream`, an event without a name each second, whose data is the same.",
        answers={200: (Answer("This moment.", LiveView),)},
    ),
)
