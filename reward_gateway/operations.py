"""What a route is: its handler and its contract in one place; server and OpenAPI document are made from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from services.contracts.problems import ProblemCode

Handler = Callable[[Request], Awaitable[Response]]

BODY_PROBLEMS = (
    ProblemCode.MALFORMED_JSON,
    ProblemCode.MALFORMED_BODY,
    ProblemCode.BODY_TIMEOUT,
    ProblemCode.BODY_TOO_LARGE,
    ProblemCode.UNSUPPORTED_MEDIA_TYPE,
    ProblemCode.UNSUPPORTED_ENCODING,
    ProblemCode.INVALID_REQUEST,
    ProblemCode.TOO_MUCH_IN_FLIGHT,
    ProblemCode.QUOTA_EXCEEDED,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One kind of answer. `example` is written out where the model's own examples do not fit."""

    description: str
    model: type[BaseModel] | None = None
    media_type: str = "application/json"
    example: Any = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. Problems that every route has (401, 500) need not be listed."""

    method: str
    path: str
    tag: str
    summary: str
    handler: Handler
    answers: Mapping[int, tuple[Answer, ...]]
    request: type[BaseModel] | None = None
    problems: tuple[ProblemCode, ...] = ()
    key: bool = True
    description: str = ""
    parameters: tuple[Mapping[str, Any], ...] = field(default=())
