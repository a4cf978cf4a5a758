"""`GET /v1/votes/{id}`: the record of a judgement."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.operations import Answer, Operation
from reward_gateway.routes.context import gateway_of, owner_of
from services.contracts.problems import ProblemCode
from services.contracts.votes import StageVotes
from services.queue.errors import QueueUnavailable
from services.runtime.problems import ProblemError


async def votes(request: Request) -> Response:
    owner = owner_of(request)
    try:
        record = await gateway_of(request).trajectories.votes.get(owner, str(request.path_params["id"]))
    except QueueUnavailable as error:
        raise ProblemError(ProblemCode.QUEUE_UNAVAILABLE, "the queue does not answer", retry_after_s=5) from error
    if record is None:
        raise ProblemError(ProblemCode.NOT_FOUND, "no votes of yours have this id (they are kept for a while only)")
    return Response(record, media_type="application/json")


OPERATIONS = (
    Operation(
        "GET",
        "/v1/votes/{id}",
        "trajectories",
        "The votes behind the beta of a stage",
        votes,
        answers={200: (Answer("What the judges were shown, what they said, and what was made of it.", StageVotes),)},
        problems=(ProblemCode.NOT_FOUND, ProblemCode.QUEUE_UNAVAILABLE),
        parameters=({"name": "id", "in": "path", "required": True, "schema": {"type": "string"}, "example": "v-81"},),
    ),
)
