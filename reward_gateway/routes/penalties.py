"""`POST /v1/trajectories/penalties`: gamma alone."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.operations import BODY_PROBLEMS, Answer, Operation
from reward_gateway.routes.context import not_built
from services.contracts.problems import ProblemCode
from services.contracts.trajectories import Penalties, PenaltiesRequest, PenaltiesResults


async def penalties(request: Request) -> Response:
    not_built(request)


OPERATIONS = (
    Operation(
        "POST",
        "/v1/trajectories/penalties",
        "trajectories",
        "Penalties (gamma) of one trajectory or several",
        penalties,
        request=PenaltiesRequest,
        answers={
            200: (
                Answer("For one trajectory.", Penalties),
                Answer("For several.", PenaltiesResults),
            )
        },
        problems=(
            *BODY_PROBLEMS,
            ProblemCode.NOT_IMPLEMENTED,
        ),
    ),
)
