"""A language model behind any OpenAI-compatible endpoint (`/v1/chat/completions`, vLLM in production)."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from services.process.prompts import Malformed, Question
from services.queue.cache import VerdictCache
from services.queue.errors import QueueUnavailable
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.settings import JudgeSettings

T = TypeVar("T")

_FIRST_PAUSE_S = 0.25
_SEEDS = 1_000  # seeds of further tries are so far apart: more than there are replicas
_LONGEST_ANSWER = 2**20
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


class ModelUnavailable(Exception):
    """The endpoint does not answer, or not with an answer, after all tries. Ours or its fault, never a candidate's."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered, and the nonce of the call that it answered."""

    text: str
    nonce: str


class ModelEndpoint:
    """Asks questions, at most `concurrency` at once, and remembers answers by their content address."""

    def __init__(self, settings: JudgeSettings, cache: VerdictCache | None) -> None:
        """`settings.url` must be set."""
        headers = {"Content-Type": "application/json"}
        if settings.key is not None:
            headers["Authorization"] = f"Bearer {settings.key.get_secret_value()}"
        limits = httpx.Limits(max_connections=settings.concurrency, max_keepalive_connections=settings.concurrency)
        timeout = httpx.Timeout(settings.timeout_s, pool=None)
        self._http = httpx.AsyncClient(headers=headers, limits=limits, timeout=timeout)
        self._url = f"{str(settings.url).rstrip('/')}/chat/completions"
        self._settings = settings
        self._cache = cache
        self._slots = asyncio.Semaphore(settings.concurrency)

    async def close(self) -> None:
        await self._http.aclose()

    async def ask(
        self, question: Question, seed: int, parse: Callable[[str], T], *, again: bool = True
    ) -> tuple[T, Reply]:
        """The parsed answer to a question, from memory where it was answered before. A malformed answer is asked for
        `again`, unless the caller knows better; what `parse` cannot read is never remembered.

        Raises:
            Malformed: no answer had the form that was asked for.
            ModelUnavailable: the endpoint failed.
        """
        settings, kind = self._settings, question.prompt.version.partition(".")[0]
        address = question.digest(settings.model, f"{settings.temperature:g}", str(seed))
        kept = await self._recall(address)
        if kept is not None:
            try:
                parsed = parse(kept.text)
            except Malformed:
                pass
            else:
                metrics.MODEL_CALLS.labels(kind, "cached").inc()
                return parsed, kept
        for attempt in range(settings.retries + 1):
            # Another seed for another try: the same one would give the same malformed answer again.
            reply = await self._call(question, kind, seed + _SEEDS**2 * attempt)
            try:
                parsed = parse(reply.text)
            except Malformed:
                metrics.MODEL_CALLS.labels(kind, "malformed").inc()
                if not again or attempt == settings.retries:
                    raise
                continue
            metrics.MODEL_CALLS.labels(kind, "answered").inc()
            await self._remember(address, reply)
            return parsed, reply
        raise AssertionError("a loop without an end")

    async def _call(self, question: Question, kind: str, seed: int) -> Reply:
        """One answer, whatever it says; failures of the endpoint are tried again with growing pauses."""
        pause_s = _FIRST_PAUSE_S
        for attempt in range(self._settings.retries + 1):
            nonce = secrets.token_hex(16)
            # Another seed here too: a server may fail on what the model says, and it would say the same again.
            body = self._body(question, kind, nonce, seed + _SEEDS * attempt)
            async with self._slots:
                started = time.perf_counter()
                fault, again = await self._try(body)
                metrics.MODEL_SECONDS.labels(kind).observe(time.perf_counter() - started)
            if isinstance(fault, _Text):
                return Reply(fault, nonce)
            metrics.MODEL_CALLS.labels(kind, "failed").inc()
            if not again or attempt == self._settings.retries:
                get_logger().warning("model_call_failed", kind=kind, fault=fault)
                raise ModelUnavailable(fault)
            await asyncio.sleep(pause_s)
            pause_s *= 2
        raise AssertionError("a loop without an end")

    def _body(self, question: Question, kind: str, nonce: str, seed: int) -> bytes:
        schema = {"name": kind, "strict": True, "schema": dict(question.schema)}
        return json.dumps(
            {
                "model": self._settings.model,
                "messages": question.messages(nonce),
                "temperature": self._settings.temperature,
                "seed": seed,
                "max_tokens": question.max_tokens + self._settings.reasoning_tokens,
                "response_format": {"type": "json_schema", "json_schema": schema},
            }
        ).encode()

    async def _try(self, body: bytes) -> tuple[_Text | str, bool]:
        """The text of an answer, or what went wrong and whether it may go better next time."""
        try:
            response = await asyncio.wait_for(self._http.post(self._url, content=body), self._settings.timeout_s)
        except (httpx.TimeoutException, asyncio.TimeoutError):
            return f"no answer within {self._settings.timeout_s:g} s", True
        except httpx.HTTPError as error:
            return type(error).__name__, True
        if response.status_code != 200:
            return f"status {response.status_code}", response.status_code in _TRANSIENT
        if len(response.content) > _LONGEST_ANSWER:
            return "an answer that is too long", False
        try:
            content = response.json()["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError, RecursionError):
            return "a response that is no chat completion", True
        return _Text(content if isinstance(content, str) else ""), False

    async def _recall(self, address: str) -> Reply | None:
        if self._cache is None:
            return None
        try:
            kept = (await self._cache.get_many([address])).get(address)
            value: Any = None if kept is None else json.loads(kept)
        except (QueueUnavailable, ValueError):
            return None
        return None if value is None else Reply(value["text"], value["nonce"])

    async def _remember(self, address: str, reply: Reply) -> None:
        if self._cache is None:
            return
        try:
            await self._cache.put_many({address: json.dumps({"text": reply.text, "nonce": reply.nonce}).encode()})
        except QueueUnavailable as error:
            get_logger().warning("answer_not_cached", error=str(error))


class _Text(str):
    """The content of an answer, told apart from the words of a fault."""

    __slots__ = ()
