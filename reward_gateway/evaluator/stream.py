"""One request to one evaluator: `POST /v1/evaluate`, its answer read line by line.

Whatever the evaluator does, the caller gets predictions for programs that it asked about, each at most once, or an
`EvaluatorFault`. Closing the generator closes the connection, which makes the evaluator abort.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping

import httpx
from pydantic import ValidationError

from reward_gateway.pace import Pace
from services.contracts.base import Json
from services.contracts.evaluator import Prediction
from services.contracts.outcomes import Reason, Verdict
from services.runtime.logging import get_logger
from services.runtime.tracing import HEADER, traceparent

_LONGEST_LINE = 8 * 2**20
_CONNECT_S = 5.0
_LONGEST_RETRY_S = 30.0
_LOGGED_LINES = 3


class EvaluatorFault(Exception):
    """The evaluator did not answer, refused, or broke off; the message is for logs and carries no program."""


class EvaluatorBusy(EvaluatorFault):
    """It is alive and has too much in flight. `retry_after_s`: when there should be room."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"it has too much in flight, try again in {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


def is_news(prediction: Prediction) -> bool:
    """It is not the prediction yet: the program has passed the gate and waits for the feedback model."""
    return (
        prediction.verdict is Verdict.UNKNOWN
        and prediction.reason is Reason.NOT_DECIDED
        and prediction.gate is not None
    )


async def evaluate(
    client: httpx.AsyncClient, programs: Mapping[str, str], options: Mapping[str, Json], silence_s: float
) -> AsyncGenerator[Prediction, None]:
    """Yield predictions of `programs` (id to code) as they arrive, and the news of gate scores that `options` ask for.

    `options`: the members of an `EvaluateRequest` besides its programs.

    Each program has at most one prediction; lines that cannot be read or that nobody asked for are left out. Ends by
    itself only when every program has its prediction.

    Raises:
        EvaluatorBusy: it has too much in flight (429).
        EvaluatorFault: anything else, silence for `silence_s` seconds included.
    """
    limits = httpx.Timeout(silence_s, connect=_CONNECT_S)
    carried = traceparent()
    traced = {HEADER: carried} if carried else {}
    open_ids, unreadable = set(programs), 0
    try:
        async with client.stream(
            "POST",
            "/v1/evaluate",
            content=_body(programs, options),
            headers={"Content-Type": "application/json", **traced},
            timeout=limits,
        ) as response:
            if response.status_code == 429:
                raise EvaluatorBusy(_retry_after_s(response))
            if response.status_code != 200:
                raise EvaluatorFault(f"it answered with status {response.status_code}")
            async for line in _lines(response):
                try:
                    prediction = Prediction.model_validate_json(line)
                except ValidationError:
                    unreadable += 1
                    continue
                if prediction.id not in open_ids:
                    unreadable += 1
                    continue
                if not is_news(prediction):
                    open_ids.remove(prediction.id)
                yield prediction
                if not open_ids:
                    return
    except (httpx.HTTPError, httpx.StreamError) as error:
        raise EvaluatorFault(f"{type(error).__name__}: {error}"[:300]) from error
    finally:
        if unreadable:
            get_logger().warning("evaluator_lines_left_out", evaluator=str(client.base_url), lines=unreadable)
    raise EvaluatorFault(f"its answer ended without {len(open_ids)} of {len(programs)} predictions")


async def _lines(response: httpx.Response) -> AsyncIterator[bytes]:
    """Raises `EvaluatorFault` for a line of more than `_LONGEST_LINE` bytes."""
    line = bytearray()
    async for part in response.aiter_bytes():
        first, *others = part.split(b"\n")
        line += first
        for other in others:
            if line.strip():
                yield bytes(line)
            line = bytearray(other)
        if len(line) > _LONGEST_LINE:
            raise EvaluatorFault(f"a line of its answer has more than {_LONGEST_LINE:,} bytes")
    if line.strip():
        yield bytes(line)


async def _body(programs: Mapping[str, str], options: Mapping[str, Json]) -> AsyncIterator[bytes]:
    """An `EvaluateRequest`, piece by piece, so that a large batch does not hold up the loop."""
    separator, pace = b'{"programs":[', Pace()
    for name, code in programs.items():
        yield separator + json.dumps({"id": name, "code": code}).encode()
        separator = b","
        await pace.rest()
    yield b"]," + json.dumps(dict(options)).encode()[1:] if options else b"]}"


def _retry_after_s(response: httpx.Response) -> float:
    given = response.headers.get("retry-after", "")
    return min(float(given), _LONGEST_RETRY_S) if given.isascii() and given.isdigit() else 1.0
