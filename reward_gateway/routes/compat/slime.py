"""`POST /compat/slime`: one sample as `remote_rm` of slime sends it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.operations import BODY_PROBLEMS, Answer, Operation
from reward_gateway.routes.context import not_built
from services.contracts.compat import SampleReward, SlimeRequest
from services.contracts.problems import ProblemCode


async def slime(request: Request) -> Response:
    not_built(request)


OPERATIONS = (
    Operation(
        "POST",
        "/compat/slime",
        "compat",
        "Reward of one sample for slime",
        slime,
        request=SlimeRequest,
        answers={200: (Answer("The reward, and whether somebody decided it.", SampleReward),)},
        problems=(
            *BODY_PROBLEMS,
            ProblemCode.NOT_IMPLEMENTED,
        ),
    ),
)
