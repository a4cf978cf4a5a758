"""`/v1/proofs/jobs`: batches that go on when nobody waits, their progress as events, and their end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from reward_gateway.batches.batch import Batch
from reward_gateway.batches.jobs import JobView, view
from reward_gateway.batches.records import Record
from reward_gateway.operations import Answer, Operation
from reward_gateway.routes.context import gateway_of, owner_of
from reward_gateway.routes.proofs import BATCH_PROBLEMS, start_batch
from services.contracts.jobs import Job, JobEventName
from services.contracts.problems import ProblemCode
from services.contracts.proofs import ScoreRequest
from services.runtime.problems import ProblemError

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_EVENT_S = 0.25
_SILENCE_S = 15.0


async def submit(request: Request) -> Response:
    found = await start_batch(request, durable=True)
    if isinstance(found, Batch):
        try:
            await found.accepted.wait()
        finally:
            gateway_of(request).batches.leave(found)
        if found.answer.done() and (error := found.answer.exception()) is not None:
            raise error
    return Response(
        view(found).json(result=False),
        status_code=202,
        media_type="application/json",
        headers={"Location": f"/v1/proofs/jobs/{found.id}"},
    )


async def get(request: Request) -> Response:
    found = await _find(request)
    return Response(view(found).json(), media_type="application/json")


async def cancel(request: Request) -> Response:
    found = await _find(request)
    await gateway_of(request).batches.cancel(found)
    found = await _find(request)
    return Response(view(found).json(result=False), media_type="application/json")


async def events(request: Request) -> Response:
    last = request.headers.get("last-event-id", "")
    seen = int(last) if last.isascii() and last.isdigit() and len(last) <= 9 else -1
    found = await _find(request)
    now = view(found)
    if now.ended and seen >= now.event_id:
        return Response(status_code=204)  # tells an EventSource not to connect again
    return StreamingResponse(
        _events(request, now, seen), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


async def _events(request: Request, now: JobView, seen: int) -> AsyncIterator[bytes]:
    batches, silent_s = gateway_of(request).batches, 0.0
    while not now.ended:
        if now.event_id > seen:
            seen, silent_s = now.event_id, 0.0
            yield _event(JobEventName.PROGRESS, now.event_id, now.progress.model_dump_json().encode())
        elif silent_s >= _SILENCE_S:
            silent_s = 0.0
            yield b": still running\n\n"  # keeps proxies from closing the connection
        if batches.draining:
            return  # the client connects again, to a gateway that stays
        await asyncio.sleep(_EVENT_S)
        silent_s += _EVENT_S
        try:
            found = await _find(request)
        except ProblemError:
            continue  # the queue does not answer for a moment
        now = view(found)
    yield _event(JobEventName.END, now.event_id, now.json())


def _event(name: JobEventName, event_id: int, data: bytes) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event_id, name.value.encode(), data)


async def _find(request: Request) -> Batch | Record:
    """Raises `ProblemError` (404): there is no such job of this caller."""
    owner, job_id = owner_of(request), str(request.path_params["id"])
    found = await gateway_of(request).batches.find(owner, job_id) if _ID.fullmatch(job_id) else None
    if found is None:
        raise ProblemError(ProblemCode.NOT_FOUND, "no job of yours has this id (results are kept for a while only)")
    return found


_ID_PARAMETER = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": f"^{_ID.pattern}$"},
    "example": "b-0197",
}
_LAST_EVENT = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "Only events after this one are sent.",
    "example": "310",
}
_PROGRESS_EXAMPLE = 'id: 310\nevent: progress\ndata: {"candidates":1024,"decided":310,"lean":300,"elapsed_s":7.5}\n\n'
_FIND_PROBLEMS = (ProblemCode.NOT_FOUND, ProblemCode.QUEUE_UNAVAILABLE)

OPERATIONS = (
    Operation(
        "POST",
        "/v1/proofs/jobs",
        "jobs",
        "Score a batch of proofs in the background",
        submit,
        request=ScoreRequest,
        answers={202: (Answer("Accepted: it goes on whether or not anybody waits, and survives a restart.", Job),)},
        problems=BATCH_PROBLEMS,
    ),
    Operation(
        "GET",
        "/v1/proofs/jobs/{id}",
        "jobs",
        "Progress of a job, and its result once it is done",
        get,
        answers={200: (Answer("The job.", Job),)},
        problems=_FIND_PROBLEMS,
        parameters=(_ID_PARAMETER,),
    ),
    Operation(
        "GET",
        "/v1/proofs/jobs/{id}/events",
        "jobs",
        "Progress of a job as server-sent events",
        events,
        answers={
            200: (
                Answer(
                    "`progress` events carry a `JobProgress`; the last one, `end`, carries the `Job`.",
                    media_type="text/event-stream",
                    example=_PROGRESS_EXAMPLE,
                ),
            ),
            204: (Answer("The event that `Last-Event-ID` names was the last one.", media_type=""),),
        },
        problems=_FIND_PROBLEMS,
        parameters=(_ID_PARAMETER, _LAST_EVENT),
    ),
    Operation(
        "DELETE",
        "/v1/proofs/jobs/{id}",
        "jobs",
        "Cancel a job",
        cancel,
        answers={200: (Answer("The job: `cancelled`, or as it is when it had ended before.", Job),)},
        problems=_FIND_PROBLEMS,
        parameters=(_ID_PARAMETER,),
    ),
)
