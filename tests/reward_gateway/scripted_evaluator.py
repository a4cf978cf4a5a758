"""A scripted evaluator: real HTTP, no model. It predicts by names in the program and fails as a test tells it to."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.reward_gateway.place import until

Judge = Callable[[str], dict[str, Any]]


def by_name(code: str) -> dict[str, Any]:
    """`eno_` is predicted invalid by the gate, `efb_` by the feedback model, everything else valid."""
    if "eno_" in code:
        return {"verdict": "invalid", "reason": "gate_rejected", "gate": 0.1, "detail": "gate 0.100 is below 0.5"}
    if "efb_" in code:
        return {"verdict": "invalid", "reason": "feedback_error", "gate": 0.7, "feedback": "invalid"}
    if "efault_" in code:
        return {"verdict": "unknown", "reason": "infrastructure"}
    return {"verdict": "valid", "reason": "ok", "gate": 0.9, "feedback": "valid", "trace": "-- annotated"}


@dataclass
class ScriptedEvaluator:
    """`gate`: lines wait for it. `cut_after`: the connection breaks after so many lines. `noise`: lines sent before."""

    judge: Judge = by_name
    name: str = "scripted"
    toolchain: str | None = None
    ready: bool = True
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    pause_s: float = 0.0
    cut_after: int | None = None
    noise: tuple[bytes, ...] = ()
    status: int = 200
    requests: list[dict[str, Any]] = field(default_factory=list)
    aborted: int = 0
    news: bool = False
    url: str = ""
    server: uvicorn.Server | None = None
    task: asyncio.Task[None] | None = None

    @property
    def programs(self) -> list[str]:
        return [program["code"] for request in self.requests for program in request["programs"]]

    async def start(self, stack: AsyncExitStack) -> ScriptedEvaluator:
        routes = [
            Route("/v1/evaluate", self._evaluate, methods=["POST"]),
            Route("/readyz", self._readyz, methods=["GET"]),
        ]
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(Starlette(routes=routes), log_config=None, lifespan="off", timeout_graceful_shutdown=0)
        self.server = uvicorn.Server(config)
        self.task = asyncio.create_task(self.server.serve(sockets=[listener]))
        await until(lambda: self.server is not None and self.server.started)
        stack.push_async_callback(self.kill)
        return self

    async def kill(self) -> None:
        """The process is gone: connections break, and nobody listens any more."""
        if self.server is not None and self.task is not None:
            self.server.force_exit = self.server.should_exit = True
            for protocol in list(self.server.server_state.connections):
                protocol.transport.abort()
            await self.task
            self.server = None

    async def _readyz(self, request: Request) -> Response:
        model = {"name": self.name, "toolchain": self.toolchain}
        body = {"gate": model, "feedback": model, "pairs": 1, "ready": int(self.ready), "in_flight": 0}
        status = "ready" if self.ready else "not_ready"
        return JSONResponse({"status": status, **body}, status_code=200 if self.ready else 503)

    async def _evaluate(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        if self.status != 200:
            return Response(status_code=self.status, headers={"Retry-After": "1"})
        return StreamingResponse(self._lines(body), media_type="application/x-ndjson")

    async def _lines(self, body: dict[str, Any]) -> AsyncIterator[bytes]:
        ended = False
        try:
            for line in self.noise:
                yield line + b"\n"
            if self.news:
                for program in body["programs"]:
                    gate = self.judge(program["code"]).get("gate")
                    yield _line({"id": program["id"], "verdict": "unknown", "reason": "not_decided", "gate": gate})
            await self.gate.wait()
            for number, program in enumerate(body["programs"]):
                if number == self.cut_after:
                    raise ConnectionAbortedError("the script cuts the stream here")
                await asyncio.sleep(self.pause_s)
                yield _line({"id": program["id"], **self.judge(program["code"])})
            ended = True
        finally:
            self.aborted += not ended


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields).encode() + b"\n"


async def evaluator(stack: AsyncExitStack, *, waits: bool = False, **options: Any) -> ScriptedEvaluator:
    """A running scripted evaluator; with `waits` it predicts nothing until its `gate` is set."""
    scripted = ScriptedEvaluator(**options)
    if not waits:
        scripted.gate.set()
    return await scripted.start(stack)
