"""`GET /v1/evaluator/quality`: how well the evaluator has predicted Lean."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.operations import Answer, Operation
from reward_gateway.routes.context import gateway_of, owner_of
from services.contracts.evaluator import EvaluatorQuality
from services.contracts.problems import ProblemCode
from services.runtime.problems import ProblemError


async def quality(request: Request) -> Response:
    owner_of(request)
    gateway = gateway_of(request)
    if not gateway.evaluator.configured:
        raise ProblemError(ProblemCode.EVALUATOR_NOT_CONFIGURED, "there is nothing to measure")
    return Response(gateway.quality.report().model_dump_json(), media_type="application/json")


OPERATIONS = (
    Operation(
        "GET",
        "/v1/evaluator/quality",
        "evaluator",
        "How well the evaluator has predicted Lean",
        quality,
        answers={200: (Answer("By window, model and source of problems.", EvaluatorQuality),)},
        problems=(ProblemCode.EVALUATOR_NOT_CONFIGURED,),
    ),
)
