"""`POST /v1/trajectories/score`: step rewards and advantages of a group of rollouts."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from reward_gateway.operations import BODY_PROBLEMS, Answer, Operation
from reward_gateway.routes.context import body_of, gateway_of, owner_of
from services.contracts.problems import ProblemCode
from services.contracts.trajectories import TrajectoryScoreRequest, TrajectoryScoreResponse


async def trajectories(request: Request) -> Response:
    owner = owner_of(request)
    body = await body_of(request)
    received_at = time.monotonic()
    work = asyncio.ensure_future(gateway_of(request).trajectories.score(body.text, owner, received_at))
    gone = asyncio.ensure_future(_hung_up(request))
    waited: set[asyncio.Future[Any]] = {work, gone}
    try:
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientDisconnect  # judges and Lean do not go on for nobody
        return Response(work.result(), media_type="application/json")
    finally:
        for task in waited:
            task.cancel()
        await asyncio.gather(*waited, return_exceptions=True)
        gateway_of(request).budget.give(body.size)


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


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
            ProblemCode.QUEUE_FULL,
            ProblemCode.QUEUE_UNAVAILABLE,
            ProblemCode.LEAN_UNAVAILABLE,
            ProblemCode.SHUTTING_DOWN,
        ),
        description="Segments, stage labels and stage rewards that are given are used; the rest is judged where the "
        "server has a judge. What is not judged by the deadline is `unannotated`, never a failure. Lean is asked only "
        "where a rollout brings a proof, or a certificate is wanted. A client that disconnects cancels the rest.",
    ),
)
