"""`POST /v1/evaluate`: predictions of the learned evaluator, as they are ready."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from reward_gateway.batches.batch import evaluator_missing
from reward_gateway.evaluator.stream import EvaluatorBusy, EvaluatorFault, is_news
from reward_gateway.operations import BODY_PROBLEMS, Answer, Operation
from reward_gateway.routes.context import gateway_of, model_of, owner_of
from services.contracts.evaluator import EvaluateRequest, Prediction
from services.contracts.outcomes import Reason, Verdict
from services.contracts.problems import Fault, ProblemCode
from services.runtime.logging import get_logger
from services.runtime.problems import ProblemError


async def evaluate(request: Request) -> Response:
    owner_of(request)
    desk = gateway_of(request).evaluator
    if not desk.configured:
        raise ProblemError(ProblemCode.EVALUATOR_NOT_CONFIGURED, "set gateway.evaluator_urls")
    asked = await model_of(request, EvaluateRequest)
    names: set[str] = set()
    for index, program in enumerate(asked.programs):
        if program.id in names:
            fault = Fault(pointer=f"/programs/{index}/id", detail="the id of another program again")
            raise ProblemError(ProblemCode.INVALID_REQUEST, "1 fault", faults=[fault])
        names.add(program.id)
    if not desk.present:
        await desk.look()
    if not desk.present:
        raise evaluator_missing(desk)
    predictions = desk.evaluate(asked)
    try:
        first = await anext(predictions)  # so that a refusal is a status and not half an answer
    except EvaluatorBusy as busy:
        raise ProblemError(
            ProblemCode.TOO_MUCH_IN_FLIGHT,
            "the evaluator has too much in flight",
            retry_after_s=int(busy.retry_after_s),
        ) from busy
    except EvaluatorFault as fault:
        get_logger().warning("evaluator_failed", error=str(fault))
        raise evaluator_missing(desk) from fault
    return StreamingResponse(_lines(first, predictions, names), media_type="application/x-ndjson")


async def _lines(
    first: Prediction, predictions: AsyncGenerator[Prediction, None], left: set[str]
) -> AsyncIterator[bytes]:
    """Every prediction as a line; what the evaluator fails on midway is `unknown`, `infrastructure`."""
    try:
        prediction = first
        while True:
            if not is_news(prediction):
                left.discard(prediction.id)
            yield _line(prediction)
            prediction = await anext(predictions)
    except StopAsyncIteration:
        return
    except EvaluatorFault as fault:
        get_logger().warning("evaluator_failed", programs=len(left), error=str(fault))
        for name in sorted(left):
            failed = "the evaluator broke off"
            yield _line(Prediction(id=name, verdict=Verdict.UNKNOWN, reason=Reason.INFRASTRUCTURE, detail=failed))
    finally:
        await predictions.aclose()


def _line(prediction: Prediction) -> bytes:
    return prediction.model_dump_json().encode() + b"\n"


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
        ),
    ),
)
