"""`POST /v1/proofs/score`: a batch in, its rewards out."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from reward_gateway.batches.batch import Batch
from reward_gateway.batches.records import Record
from reward_gateway.bodies.score import parse_score_body
from reward_gateway.operations import BODY_PROBLEMS, Answer, Operation
from reward_gateway.routes.context import body_of, gateway_of, owner_of
from services.contracts.jobs import JobState
from services.contracts.problems import ProblemCode
from services.contracts.proofs import ScoreRequest, ScoreResponse
from services.runtime.problems import ProblemError

BATCH_PROBLEMS = (
    *BODY_PROBLEMS,
    ProblemCode.PROGRAM_TOO_LARGE,
    ProblemCode.TOO_MANY_CANDIDATES,
    ProblemCode.BATCH_CONFLICT,
    ProblemCode.EVALUATOR_NOT_CONFIGURED,
    ProblemCode.QUEUE_FULL,
    ProblemCode.QUEUE_UNAVAILABLE,
    ProblemCode.LEAN_UNAVAILABLE,
    ProblemCode.SHUTTING_DOWN,
)


async def start_batch(request: Request, *, durable: bool) -> Batch | Record:
    """Read the request's body and start or join its batch; a `Record` is one that has ended, or runs elsewhere.

    The caller leaves a `Batch` again. Waits for a batch elsewhere only where the request waits too. Raises
    `ProblemError`.
    """
    gateway, owner = gateway_of(request), owner_of(request)
    body = await body_of(request)
    received_at = time.monotonic()
    size, held_by_batch = body.size, False
    try:
        parsed = await parse_score_body(body.text, gateway.quotas.max_batch(owner, gateway.settings.max_candidates))
        while True:
            found = await gateway.batches.start(
                owner, parsed, body.text, body.digest, received_at=received_at, durable=durable
            )
            if isinstance(found, Batch):
                if found.candidates is parsed.candidates and found.task is not None:
                    held_by_batch = True
                    found.task.add_done_callback(lambda _: gateway.budget.give(size))
                return found
            if durable:
                return found
            settled = await gateway.batches.settled(found)
            if settled is not None:
                return settled
    finally:
        if not held_by_batch:
            gateway.budget.give(size)


async def score(request: Request) -> Response:
    found = await start_batch(request, durable=False)
    if isinstance(found, Record):
        body = answer_of(found)
    else:
        try:
            body = await _answer_unless_gone(request, found)
        finally:
            gateway_of(request).batches.leave(found)
    return Response(body, media_type="application/json")


def answer_of(record: Record) -> bytes:
    """The `ScoreResponse` of a batch that has ended. Raises `ProblemError` when it ended without one."""
    if record.state is JobState.CANCELLED:
        raise ProblemError(ProblemCode.CANCELLED, "the batch with this id was cancelled")
    if record.problem is not None:
        raise ProblemError(record.problem.code, record.problem.detail, retry_after_s=record.problem.retry_after_s)
    if record.answer is None:
        raise ProblemError(ProblemCode.INTERNAL_ERROR, "the batch has ended and its answer is lost")
    return record.answer


async def _answer_unless_gone(request: Request, batch: Batch) -> bytes:
    """Raises `ClientDisconnect` as soon as the client hangs up."""
    gone = asyncio.create_task(_hung_up(request))
    waited: set[asyncio.Future[Any]] = {batch.answer, gone}
    try:
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not batch.answer.done():
            raise ClientDisconnect
        return batch.answer.result().body
    finally:
        gone.cancel()


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


OPERATIONS = (
    Operation(
        "POST",
        "/v1/proofs/score",
        "proofs",
        "Score a batch of proofs",
        score,
        request=ScoreRequest,
        answers={200: (Answer("The results, in the order of the candidates.", ScoreResponse),)},
        problems=(*BATCH_PROBLEMS, ProblemCode.CANCELLED),
        description="Waits for the cutoff. A client that disconnects cancels the batch, unless others wait for it too.",
    ),
)
