"""`POST /compat/openrlhf`: what the remote reward call of OpenRLHF sends."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.operations import BODY_PROBLEMS, Answer, Operation
from reward_gateway.routes.context import not_built
from services.contracts.compat import OpenRLHFRequest, OpenRLHFResponse
from services.contracts.problems import ProblemCode


async def openrlhf(request: Request) -> Response:
    not_built(request)


OPERATIONS = (
    Operation(
        "POST",
        "/compat/openrlhf",
        "compat",
        "Rewards for OpenRLHF",
        openrlhf,
        request=OpenRLHFRequest,
        answers={200: (Answer("Rewards and scores in the order of the queries.", OpenRLHFResponse),)},
        problems=(
            *BODY_PROBLEMS,
            ProblemCode.NOT_IMPLEMENTED,
        ),
    ),
)
