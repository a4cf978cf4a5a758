"""`POST /api/check`, `POST /verify` and `GET /health`: the HTTP contract of the Kimina Lean Server."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.operations import BODY_PROBLEMS, Answer, Operation
from reward_gateway.routes.context import not_built
from services.contracts.compat import (
    KiminaCheckRequest,
    KiminaCheckResponse,
    KiminaHealth,
    KiminaVerifyRequest,
    KiminaVerifyResponse,
)
from services.contracts.problems import ProblemCode


async def check(request: Request) -> Response:
    not_built(request)


async def verify(request: Request) -> Response:
    not_built(request)


async def health(request: Request) -> Response:
    not_built(request)


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
            problems=(*BODY_PROBLEMS, ProblemCode.NOT_IMPLEMENTED),
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
            problems=(*BODY_PROBLEMS, ProblemCode.NOT_IMPLEMENTED),
        )
        for path in ("/verify", "/verify/", "/one_pass_verify_batch", "/one_pass_verify_batch/")
    ),
    Operation(
        "GET",
        "/health",
        "compat",
        "Kimina's health route",
        health,
        answers={200: (Answer("Alive.", KiminaHealth),)},
        problems=(ProblemCode.NOT_IMPLEMENTED,),
        key=False,
    ),
)
