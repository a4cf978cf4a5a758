"""An evaluator behind a real HTTP server in this process."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx

from gpu_evaluator.evaluator import Evaluator
from gpu_evaluator.pool import Pair
from gpu_evaluator.service.server import make_server
from services.contracts.evaluator import Prediction
from services.runtime.serving import DrainingServer
from services.runtime.settings import load_settings


async def until(condition: Callable[[], bool], limit_s: float = 10.0) -> None:
    """Wait for it."""
    for _ in range(round(limit_s / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never became so")


class Served:
    """A client of the server, the server, and the evaluator behind it."""

    def __init__(self, client: httpx.AsyncClient, server: DrainingServer, evaluator: Evaluator) -> None:
        self.client, self.server, self.evaluator = client, server, evaluator

    async def until_ready(self) -> None:
        for _ in range(200):
            if (await self.client.get("/readyz")).status_code == 200:
                return
            await asyncio.sleep(0.05)
        raise AssertionError((await self.client.get("/readyz")).text)

    async def evaluate(self, codes: Sequence[str], **options: Any) -> list[Prediction]:
        """The lines of the answer, in the order in which they came."""
        programs = [{"id": f"c{index}", "code": code} for index, code in enumerate(codes)]
        body = json.dumps({"programs": programs, **options})  # escapes whatever a program holds
        headers = {"Content-Type": "application/json"}
        answer = await self.client.post("/v1/evaluate", content=body, headers=headers)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/x-ndjson"
        return [Prediction.model_validate(json.loads(line)) for line in answer.text.splitlines()]


@contextlib.asynccontextmanager
async def serve(pairs: Sequence[Pair], **options: Any) -> AsyncIterator[Served]:
    """Serve `pairs` on a free port; `options` are settings of the section `evaluator`."""
    settings = load_settings(evaluator={"port": 0, "health_s": 0.1, "drain_s": 5.0, **options})
    evaluator = Evaluator(pairs, settings.evaluator)
    server = make_server(evaluator, settings)
    running = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started or running.done())
        port = server.servers[0].sockets[0].getsockname()[1]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            yield Served(client, server, evaluator)
    finally:
        server.should_exit = True
        await running
