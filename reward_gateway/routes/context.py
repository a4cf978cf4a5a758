"""What handlers share: the gateway behind the application, the caller, and the body."""

from __future__ import annotations

from starlette.requests import Request

from reward_gateway.bodies.models import Model, parse_model
from reward_gateway.bodies.score import too_many
from reward_gateway.bodies.stream import Body, read_body
from reward_gateway.gateway import Gateway
from services.contracts.problems import ProblemCode
from services.runtime.problems import ProblemError


def gateway_of(request: Request) -> Gateway:
    gateway: Gateway = request.app.state.gateway
    return gateway


def owner_of(request: Request) -> str:
    """The name of the caller's key. Raises `ProblemError` (401)."""
    owner = gateway_of(request).keys.identify(request.headers.get("authorization"))
    if owner is None:
        given = "authorization" in request.headers
        raise ProblemError(
            ProblemCode.UNAUTHENTICATED,
            "invalid API key" if given else "missing API key",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return owner


def require_room(request: Request, owner: str, count: int, pointer: str) -> None:
    """Raises `ProblemError` (413): more candidates, at `pointer` of the body, than a batch of this caller may have."""
    gateway = gateway_of(request)
    most = gateway.quotas.max_batch(owner, gateway.settings.max_candidates)
    if count > most:
        raise too_many(most, pointer)


async def body_of(request: Request) -> Body:
    """The body within the server's limits. The caller gives `size` back to the budget. Raises `ProblemError`."""
    gateway = gateway_of(request)
    await gateway.quotas.request(owner_of(request))
    limits = gateway.settings
    return await read_body(request, gateway.budget, limit=limits.max_body_bytes, timeout_s=limits.body_timeout_s)


async def model_of(request: Request, model: type[Model]) -> Model:
    """The body as a model, for routes with bodies of ordinary size. Raises `ProblemError`."""
    body = await body_of(request)
    try:
        return parse_model(model, body.text)
    finally:
        gateway_of(request).budget.give(body.size)
