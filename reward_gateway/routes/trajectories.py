"""`POST /v1/trajectories/score`: step rewards and advantages of a group of rollouts."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.operations import BODY_PROBLEMS, Answer, Operation
from reward_gateway.routes.context import not_built
from services.contracts.problems import ProblemCode
from services.contracts.trajectories import TrajectoryScoreRequest, TrajectoryScoreResponse


async def trajectories(request: Request) -> Response:
    not_built(request)


OPERATIONS = (
    Operation(
        "POST",
        "/v1/trajectories/score",
        "trajectories",
        "Score the rollouts of one prompt",
        trajectories,
        request=TrajectoryScoreRequest,
        answers={200: (Answer("Rows for each step, and what the group came to.", TrajectoryScoreResponse),)},
        problems=(
            *BODY_PROBLEMS,
            ProblemCode.JUDGE_UNAVAILABLE,
            ProblemCode.NOT_IMPLEMENTED,
        ),
    ),
)
