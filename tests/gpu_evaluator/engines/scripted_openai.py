"""A server without a model that speaks the routes of vLLM that the evaluator uses, as a test scripts them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.gpu_evaluator.served import until

TRUE, FALSE = 1_000, 1_001
CONTEXT = 64


def by_name(prompt: str) -> float:
    return 0.1 if "bad" in prompt else 0.9


@dataclass
class ScriptedOpenAI:
    """`speculates`: as a real server does with speculative decoding, it refuses label scores."""

    speculates: bool = False
    priorities: bool = True
    labels: dict[str, list[int]] = field(default_factory=lambda: {"true": [TRUE], "false": [FALSE]})
    score: Callable[[str], float] = by_name
    answer: Callable[[dict[str, Any]], Response | None] = lambda body: None  # instead of the usual one
    delay_s: float = 0.0
    finish: str = "stop"
    bodies: list[dict[str, Any]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    left: int = 0
    url: str = ""

    async def tokenize(self, request: Request) -> Response:
        text = (await request.json())["prompt"]
        return JSONResponse({"tokens": self.labels.get(text, list(text.encode()))})

    async def models(self, request: Request) -> Response:
        return JSONResponse({"data": [{"id": "tiny", "max_model_len": CONTEXT}]})

    async def health(self, request: Request) -> Response:
        return Response()

    async def command(self, request: Request) -> Response:
        self.commands.append(f"{request.url.path}?{request.url.query}".rstrip("?"))
        return Response()

    async def completions(self, request: Request) -> Response:
        body = await request.json()
        self.bodies.append(body)
        if body.get("priority") and not self.priorities:
            return JSONResponse({"error": "priority is not supported by fcfs"}, 400)
        if "logprob_token_ids" in body and self.speculates:
            return JSONResponse({"error": "EngineCore encountered an issue"}, 500)
        if (scripted := self.answer(body)) is not None:
            return scripted
        waiting = asyncio.create_task(asyncio.sleep(self.delay_s))
        gone = asyncio.create_task(self._disconnect(request))
        await asyncio.wait({waiting, gone}, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        if not waiting.done():
            waiting.cancel()
            self.left += 1
            return Response()
        prompt = body["prompt"] if isinstance(body["prompt"], str) else bytes(body["prompt"]).decode()
        if "logprob_token_ids" in body:
            score = self.score(prompt)
            top = {f"token_id:{TRUE}": math.log(score), f"token_id:{FALSE}": math.log(1 - score)}
            return JSONResponse({"choices": [{"index": 0, "logprobs": {"top_logprobs": [top]}}]})
        choices = [{"index": n, "text": f"{prompt}#{n}", "finish_reason": self.finish} for n in range(body.get("n", 1))]
        return JSONResponse({"choices": choices[::-1]})

    async def _disconnect(self, request: Request) -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass


@contextlib.asynccontextmanager
async def listening(script: ScriptedOpenAI) -> AsyncIterator[ScriptedOpenAI]:
    posts = {
        "/tokenize": script.tokenize,
        "/v1/completions": script.completions,
        "/sleep": script.command,
        "/wake_up": script.command,
    }
    routes = [Route(path, handler, methods=["POST"]) for path, handler in posts.items()]
    routes += [Route("/health", script.health), Route("/v1/models", script.models)]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), port=0, log_level="warning"))
    running = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started)
        script.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        yield script
    finally:
        server.should_exit = True
        await running


def malformed(kind: str) -> Response:
    """Answers that no client may trust."""
    return {
        "no json": Response("<html>"),
        "nested": Response("[" * 100_000),
        "no choices": JSONResponse({"choices": []}),
        "no labels": JSONResponse({"choices": [{"index": 0, "logprobs": {"top_logprobs": [{"token_id:5": -1}]}}]}),
        "infinite": Response(
            json.dumps(
                {"choices": [{"logprobs": {"top_logprobs": [{f"token_id:{TRUE}": 0, f"token_id:{FALSE}": -1e999}]}}]}
            )
        ),
        "refused": JSONResponse({"error": "out of memory"}, 500),
        "cut off": Response(b'{"choices": [{"ind', headers={"Content-Length": "5000"}),
    }[kind]
