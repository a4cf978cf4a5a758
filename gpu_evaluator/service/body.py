"""The body of `POST /v1/evaluate`, within the server's limits."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request

from services.contracts.base import MAX_PROGRAM_BYTES, MAX_PROGRAM_CHARACTERS
from services.contracts.evaluator import EvaluateRequest
from services.contracts.problems import Fault, ProblemCode
from services.runtime.decoding import ENCODINGS, Undecodable, decompress, read_encoding
from services.runtime.problems import ProblemError

_LONGEST_POINTER = 200


async def read_request(request: Request, *, max_bytes: int, timeout_s: float) -> EvaluateRequest:
    """Raises `ProblemError`: media type or encoding 415, size 413, time 408, body or JSON 400, contract 422."""
    media = request.headers.get("content-type", "application/json").split(";")[0].strip().lower()
    if media != "application/json":
        raise ProblemError(ProblemCode.UNSUPPORTED_MEDIA_TYPE, "send Content-Type: application/json")
    encoding = read_encoding(request.headers.get("content-encoding"))
    if encoding is None:
        detail = f"send the body as it is, or with one Content-Encoding of {', '.join(ENCODINGS)}"
        raise ProblemError(ProblemCode.UNSUPPORTED_ENCODING, detail, headers={"Accept-Encoding": ", ".join(ENCODINGS)})
    try:
        body = await asyncio.wait_for(_read(request, encoding, max_bytes), timeout_s)
    except asyncio.TimeoutError:
        detail = f"the body was not complete after {timeout_s:g} s"
        raise ProblemError(ProblemCode.BODY_TIMEOUT, detail, retry_after_s=1) from None
    return await asyncio.to_thread(parse_request, body)


async def _read(request: Request, encoding: str, max_bytes: int) -> bytes:
    """The whole body, decompressed; it stays within `max_bytes` at every step of the decompression."""
    announced = request.headers.get("content-length", "")
    body = bytearray()
    too_large = ProblemError(ProblemCode.BODY_TOO_LARGE, f"the body is larger than {max_bytes} bytes")
    if encoding == "identity" and announced.isascii() and announced.isdigit() and int(announced) > max_bytes:
        raise too_large
    try:
        async for piece in decompress(request.stream(), encoding):
            body += piece
            if len(body) > max_bytes:
                raise too_large
            await asyncio.sleep(0)  # a small body can unfold into many pieces
    except Undecodable:
        raise ProblemError(ProblemCode.MALFORMED_BODY, f"the body is not valid {encoding}") from None
    return bytes(body)


def parse_request(body: bytes) -> EvaluateRequest:
    """Raises `ProblemError`."""
    try:
        value: Any = json.loads(body)
    except UnicodeDecodeError as error:
        raise ProblemError(ProblemCode.MALFORMED_JSON, f"the body is not UTF-8: {error.reason}") from None
    except json.JSONDecodeError as error:
        detail = f"{error.msg} (line {error.lineno}, column {error.colno})"
        raise ProblemError(ProblemCode.MALFORMED_JSON, detail) from None
    except (RecursionError, ValueError):  # nested too deep, or a number of thousands of digits
        raise ProblemError(ProblemCode.MALFORMED_JSON, "the body is nested too deep, or a number is too long") from None
    try:
        request = EvaluateRequest.model_validate(value)
    except ValidationError as error:
        entries = error.errors(include_url=False, include_input=False, include_context=False)
        raise _invalid([Fault(pointer=_pointer(entry["loc"]), detail=entry["msg"]) for entry in entries]) from None
    _check_programs(request)
    return request


def _check_programs(request: EvaluateRequest) -> None:
    faults: list[Fault] = []
    seen: dict[str, int] = {}
    for index, program in enumerate(request.programs):
        if (first := seen.setdefault(program.id, index)) != index:
            faults.append(Fault(pointer=f"/programs/{index}/id", detail=f"the id of /programs/{first} again"))
        if len(program.code) > MAX_PROGRAM_CHARACTERS and len(program.code.encode()) > MAX_PROGRAM_BYTES:
            fault = Fault(pointer=f"/programs/{index}/code", detail=f"more than {MAX_PROGRAM_BYTES} bytes of UTF-8")
            detail = f"a program may have {MAX_PROGRAM_BYTES} bytes"
            raise ProblemError(ProblemCode.PROGRAM_TOO_LARGE, detail, faults=[fault])
    if faults:
        raise _invalid(faults)


def _invalid(faults: list[Fault]) -> ProblemError:
    detail = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    return ProblemError(ProblemCode.INVALID_REQUEST, detail, faults=faults)


def _pointer(location: tuple[int | str, ...]) -> str:
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in location)
    text = "".join(f"/{part}" for part in parts)[:_LONGEST_POINTER]
    return text.encode("utf-8", "backslashreplace").decode()
