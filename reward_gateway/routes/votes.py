"""`GET /v1/votes/{id}`: the record of a judgement."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.operations import Answer, Operation
from reward_gateway.routes.context import not_built
from services.contracts.problems import ProblemCode
from services.contracts.votes import StageVotes


async def votes(request: Request) -> Response:
    not_built(request)


OPERATIONS = (
    Operation(
        "GET",
        "/v1/votes/{id}",
        "trajectories",
        "The votes behind the beta of a stage",
        votes,
        answers={200: (Answer("What the judges were shown, what they said, and what was made of it.", StageVotes),)},
        problems=(
            ProblemCode.NOT_FOUND,
            ProblemCode.NOT_IMPLEMENTED,
        ),
        parameters=({"name": "id", "in": "path", "required": True, "schema": {"type": "string"}, "example": "v-81"},),
    ),
)
