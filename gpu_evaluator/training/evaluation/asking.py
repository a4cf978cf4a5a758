"""Predictions for labelled programs: from an evaluator at a URL, or from the engine that the settings name."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

import httpx
from pydantic import ValidationError

from gpu_evaluator.catalog import make_pairs
from gpu_evaluator.evaluator import Evaluator
from services.contracts.evaluator import EvaluateRequest, EvaluationMethod, Prediction, Program
from services.runtime.settings import Settings, SettingsError

_AT_ONCE = 8_192
_LOOK_S = 0.05
_CONNECT_S = 10.0

Ask = Callable[[EvaluateRequest], AsyncIterator[Prediction]]
Heard = Callable[[Prediction, int], None]


class AskError(Exception):
    """No evaluator answered as it should; the message says which and how."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Predictions in the order in which they came. `seconds`: from the first request to the last answer."""

    predictions: list[Prediction]
    seconds: float


async def ask_all(ask: Ask, programs: Mapping[str, str], method: EvaluationMethod | None, heard: Heard) -> Answers:
    """One prediction for each program (id to code), with its trace.

    `heard` gets each as it comes, and the number of programs that have one.

    Raises `AskError` when an answer ends without a prediction for every program.
    """
    ids = list(programs)
    found: dict[str, Prediction] = {}
    begin = time.monotonic()
    for start in range(0, len(ids), _AT_ONCE):
        part = ids[start : start + _AT_ONCE]
        request = EvaluateRequest(
            programs=tuple(Program(id=name, code=programs[name]) for name in part), method=method, trace=True
        )
        async for prediction in ask(request):
            found[prediction.id] = prediction
            heard(prediction, len(found))
        if missing := sum(name not in found for name in part):
            raise AskError(f"its answer ended without {missing} of {len(part)} predictions")
    return Answers(list(found.values()), time.monotonic() - begin)


@contextlib.asynccontextmanager
async def at_url(url: str, key: str | None, silence_s: float) -> AsyncIterator[Ask]:
    """An evaluator, or a gateway, at a URL."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    limits = httpx.Timeout(silence_s, connect=_CONNECT_S)
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=limits) as client:

        async def ask(request: EvaluateRequest) -> AsyncIterator[Prediction]:
            # Escaped JSON: a program may hold a lone surrogate, which no UTF-8 text can.
            body = json.dumps(request.model_dump(exclude_none=True))
            content_type = {"Content-Type": "application/json"}
            try:
                async with client.stream("POST", "/v1/evaluate", content=body, headers=content_type) as answer:
                    if answer.status_code != 200:
                        said = (await answer.aread())[:300].decode(errors="replace")
                        raise AskError(f"{url} answered {answer.status_code}: {said}")
                    async for line in answer.aiter_lines():
                        if line.strip():
                            yield Prediction.model_validate_json(line)
            except (httpx.HTTPError, httpx.StreamError) as error:
                raise AskError(f"{url}: {type(error).__name__}: {error}") from error
            except ValidationError as error:
                raise AskError(f"{url} sent a line that is no prediction: {error.errors()[0]['msg']}") from None

        yield ask


@contextlib.asynccontextmanager
async def in_this_process(settings: Settings) -> AsyncIterator[Ask]:
    """The engine of the settings, started and stopped. Raises `SettingsError`, `AskError`."""
    evaluator = Evaluator(make_pairs(settings), settings.evaluator)

    async def ask(request: EvaluateRequest) -> AsyncIterator[Prediction]:
        if not evaluator.can(request.method):
            raise SettingsError("evaluator.method: this engine has no feedback model; use the method gate")
        async with aclosing(evaluator.evaluate(request, time.monotonic())) as predictions:
            async for prediction in predictions:
                yield prediction

    await evaluator.start()
    try:
        await _until_ready(evaluator, settings.evaluator.start_s)
        yield ask
    finally:
        await evaluator.stop()


async def _until_ready(evaluator: Evaluator, limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while (readiness := evaluator.readiness()).status != "ready":
        if time.monotonic() > end:
            missing = ", ".join(part.detail for part in readiness.missing)
            raise AskError(f"the engine is not up after {limit_s:g} s: {missing}")
        await asyncio.sleep(_LOOK_S)
