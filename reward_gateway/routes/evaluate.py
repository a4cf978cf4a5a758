"""`POST /v1/evaluate`: predictions of the learned evaluator, as they are ready."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.operations import BODY_PROBLEMS, Answer, Operation
from reward_gateway.routes.context import not_built
from services.contracts.evaluator import EvaluateRequest, Prediction
from services.contracts.problems import ProblemCode


async def evaluate(request: Request) -> Response:
    not_built(request)


OPERATIONS = (
    Operation(
        "POST",
        "/v1/evaluate",
        "evaluator",
        "Predict the verdicts of Lean",
        evaluate,
        request=EvaluateRequest,
        answers={
            200: (
                Answer(
                    "A line for each program, in the order in which they are ready.",
                    Prediction,
                    media_type="application/x-ndjson",
                ),
            )
        },
        problems=(
            *BODY_PROBLEMS,
            ProblemCode.EVALUATOR_NOT_CONFIGURED,
            ProblemCode.EVALUATOR_UNAVAILABLE,
            ProblemCode.NOT_IMPLEMENTED,
        ),
    ),
)
