"""`GET /v1/evaluator/quality`: how well the evaluator has predicted Lean."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.operations import Answer, Operation
from reward_gateway.routes.context import not_built
from services.contracts.evaluator import EvaluatorQuality
from services.contracts.problems import ProblemCode


async def quality(request: Request) -> Response:
    not_built(request)


OPERATIONS = (
    Operation(
        "GET",
        "/v1/evaluator/quality",
        "evaluator",
        "How well the evaluator has predicted Lean",
        quality,
        answers={200: (Answer("By window, model and source of problems.", EvaluatorQuality),)},
        problems=(
            ProblemCode.EVALUATOR_NOT_CONFIGURED,
            ProblemCode.NOT_IMPLEMENTED,
        ),
    ),
)
