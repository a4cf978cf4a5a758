"""`POST /v1/trajectories/penalties`: gamma alone."""

from __future__ import annotations

import asyncio
import time

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.bodies.faults import Faults
from reward_gateway.bodies.models import parse_model
from reward_gateway.operations import BODY_PROBLEMS, Answer, Operation
from reward_gateway.routes.context import body_of, gateway_of, owner_of
from services.contracts.trajectories import (
    Penalties,
    PenaltiesRequest,
    PenaltiesResults,
    StepPenalty,
    TrajectoryFormat,
    TrajectoryPenalties,
)
from services.process.penalties import NAMES, ActionReader, penalties_of
from services.process.trajectories import TrajectoryError
from services.runtime.metrics import PENALTIES, PENALTY_SECONDS, STEPS_JUDGED


async def penalties(request: Request) -> Response:
    owner_of(request)
    body = await body_of(request)
    try:
        # Parsing commands is work for a processor: beside the event loop, not on it.
        answer = await asyncio.to_thread(_answer, body.text)
    finally:
        gateway_of(request).budget.give(body.size)
    return Response(answer.model_dump_json(), media_type="application/json")


def _answer(text: str) -> Penalties | PenaltiesResults:
    """Raises `ProblemError`."""
    started = time.perf_counter()
    asked = parse_model(PenaltiesRequest, text)
    reader, faults = ActionReader(), Faults()
    if asked.trajectories is None:
        steps = _judge(asked.trajectory, asked.format, reader, faults, ("trajectory",))
        faults.check()
        _count(started, steps)
        return Penalties(steps=steps)
    results: list[TrajectoryPenalties] = []
    seen: dict[str, int] = {}
    for index, given in enumerate(asked.trajectories):
        place = ("trajectories", index)
        if seen.setdefault(given.id, index) != index:
            faults.add((*place, "id"), f"the id of /trajectories/{seen[given.id]} again")
        rows = _judge(given.trajectory, given.format, reader, faults, (*place, "trajectory"))
        results.append(TrajectoryPenalties(id=given.id, steps=rows))
    faults.check()
    _count(started, tuple(row for result in results for row in result.steps))
    return PenaltiesResults(results=tuple(results))


def _judge(
    record: object,
    format: TrajectoryFormat | None,
    reader: ActionReader,
    faults: Faults,
    place: tuple[str | int, ...],
) -> tuple[StepPenalty, ...]:
    """One trajectory's rows; none, and a fault at its place in the body, when it does not fit its format."""
    try:
        return penalties_of(record, None if format is None else format.value, reader)
    except TrajectoryError as error:
        faults.add((*place, *error.location), error.message)
        return ()


def _count(started: float, steps: tuple[StepPenalty, ...]) -> None:
    STEPS_JUDGED.inc(len(steps))
    for row in steps:
        for rule in row.rules:
            PENALTIES.labels(NAMES[rule]).inc()
    PENALTY_SECONDS.observe(time.perf_counter() - started)


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
        problems=BODY_PROBLEMS,
    ),
)
