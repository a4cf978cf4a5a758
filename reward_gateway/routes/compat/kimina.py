"""`POST /api/check`, `POST /verify` and `GET /health`: the HTTP contract of the Kimina Lean Server.

Programs run as they are and Lean's messages come back raw: whoever reads them for a reward can be lied to by a program
that prints. `POST /v1/proofs/score` gives verdicts instead.
"""

from __future__ import annotations

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.compat.patience import unless_gone
from reward_gateway.compat.repl_shape import command_response, error_response
from reward_gateway.compat.snippets import RunOptions, run_snippets
from reward_gateway.operations import BODY_PROBLEMS, Answer, Operation
from reward_gateway.routes.compat.context import FAILURES, settings_of
from reward_gateway.routes.context import gateway_of, model_of, owner_of, require_room
from services.contracts.compat import (
    InfoTree,
    KiminaCheckRequest,
    KiminaCheckResponse,
    KiminaHealth,
    KiminaResult,
    KiminaVerifyRequest,
    KiminaVerifyResponse,
    KiminaVerifyResult,
)
from services.contracts.lean import LeanOutcome
from services.contracts.outcomes import LeanStatus, Reason
from services.contracts.problems import ProblemCode
from services.proofs.precheck import Rejection


async def check(request: Request) -> Response:
    owner = owner_of(request)
    asked = await model_of(request, KiminaCheckRequest)
    require_room(request, owner, len(asked.snippets), "/snippets")
    outcomes = await _run(request, owner, [snippet.code for snippet in asked.snippets], asked.timeout, asked.infotree)
    wants_tree = asked.infotree is not None
    results = tuple(
        _result(snippet.id, outcome, asked.timeout, debug=asked.debug, infotree=wants_tree)
        for snippet, outcome in zip(asked.snippets, outcomes, strict=True)
    )
    return _json(KiminaCheckResponse(results=results))


async def verify(request: Request) -> Response:
    owner = owner_of(request)
    asked = await model_of(request, KiminaVerifyRequest)
    require_room(request, owner, len(asked.codes), "/codes")
    outcomes = await _run(request, owner, [code.program for code in asked.codes], asked.timeout, asked.infotree_type)
    wants_tree = asked.infotree_type is not None
    results = []
    for code, outcome in zip(asked.codes, outcomes, strict=True):
        new = _result(str(code.custom_id), outcome, asked.timeout, debug=False, infotree=wants_tree)
        response = None if new.response is None else {**new.response, "time": new.time}
        results.append(KiminaVerifyResult(custom_id=new.id, error=new.error, response=response))
    return _json(KiminaVerifyResponse(results=tuple(results)))


async def health(request: Request) -> Response:
    return _json(KiminaHealth())


async def _run(
    request: Request, owner: str, programs: list[str], timeout_s: float, infotree: InfoTree | None
) -> list[LeanOutcome | Rejection]:
    received_at = time.monotonic()
    settings, gateway = settings_of(request), gateway_of(request)
    options = RunOptions(
        timeout_s=float(timeout_s),
        limit_s=settings.kimina_limit_s,
        admission_s=settings.kimina_wait_s,
        heartbeats=gateway.settings.heartbeats,
        tactics=infotree is not None,
    )
    return await unless_gone(request, run_snippets(owner, gateway.batches, programs, options, received_at))


def _result(
    snippet: str, outcome: LeanOutcome | Rejection, timeout_s: float, *, debug: bool, infotree: bool
) -> KiminaResult:
    """One snippet's result. Errors are the server's words for what kept Lean from an answer to this snippet alone."""
    if isinstance(outcome, Rejection):
        return KiminaResult(id=snippet, time=0.0, response=error_response(outcome.detail, outcome.position))
    timed_out = outcome.status is LeanStatus.TIMEOUT
    return KiminaResult(
        id=snippet,
        time=outcome.elapsed_s,
        error=(error := _error(outcome, timeout_s)),
        response=None if error is not None else _response(outcome, infotree),
        diagnostics=_diagnostics(outcome) if debug or timed_out else None,
    )


def _error(outcome: LeanOutcome, timeout_s: float) -> str | None:
    if outcome.status is LeanStatus.TIMEOUT:
        return f"Lean REPL command timed out in {float(timeout_s)} seconds"  # clients look for "timed out"
    if outcome.reason is Reason.NOT_DECIDED:
        return "no engine was free for this snippet within the limit of the call"
    if outcome.reason is Reason.INFRASTRUCTURE:
        return f"the server failed on this snippet: {outcome.detail or 'no further detail'}"
    if outcome.reason is Reason.RESOURCE_EXHAUSTED:
        return f"this snippet {outcome.detail or 'exhausted the resources of Lean'}"
    return None


def _response(outcome: LeanOutcome, infotree: bool) -> dict[str, Any]:
    if outcome.reason is Reason.STATEMENT_INVALID:  # of a program without a statement: its imports are unknown
        return {"message": outcome.detail or "the imports cannot be opened"}
    return command_response(outcome, infotree=infotree)


def _diagnostics(outcome: LeanOutcome) -> dict[str, Any]:
    """Who ran it, and what a verdict would have been: more than messages can say."""
    said = {"repl_uuid": outcome.worker, "verdict": outcome.verdict.value, "reason": outcome.reason.value}
    return {name: value for name, value in said.items() if value is not None}


def _json(model: KiminaCheckResponse | KiminaVerifyResponse | KiminaHealth) -> Response:
    return Response(model.model_dump_json(exclude_none=True), media_type="application/json")


_CHECK_WORDS = "Kimina's clients, unmodified, work against these routes; see docs/compat.md for what differs."

OPERATIONS = (
    *(
        Operation(
            "POST",
            path,
            "compat",
            "Check snippets, for Kimina's clients",
            check,
            request=KiminaCheckRequest,
            answers={200: (Answer("Raw answers of the Lean REPL.", KiminaCheckResponse),)},
            problems=(*BODY_PROBLEMS, ProblemCode.TOO_MANY_CANDIDATES, *FAILURES),
            description=_CHECK_WORDS,
        )
        for path in ("/api/check", "/api/check/")
    ),
    *(
        Operation(
            "POST",
            path,
            "compat",
            "Verify codes, for Kimina's older clients",
            verify,
            request=KiminaVerifyRequest,
            answers={200: (Answer("Raw answers of the Lean REPL.", KiminaVerifyResponse),)},
            problems=(*BODY_PROBLEMS, ProblemCode.TOO_MANY_CANDIDATES, *FAILURES),
            description=_CHECK_WORDS,
        )
        for path in ("/verify", "/verify/", "/one_pass_verify_batch", "/one_pass_verify_batch/")
    ),
    *(
        Operation(
            "GET",
            path,
            "compat",
            "Kimina's health route",
            health,
            answers={200: (Answer("Alive.", KiminaHealth),)},
            key=False,
        )
        for path in ("/health", "/health/")
    ),
)
