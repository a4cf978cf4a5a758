"""A language model with scripted answers behind the real protocol: an OpenAI-compatible server on a real socket."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.reward_gateway.place import until

Say = Callable[["Asked"], "str | int | Response | Awaitable[str | int | Response]"]


@dataclass
class Asked:
    """One call as the server received it. `prompt` names the question, `seed` the replica (plus 1,000 a retry)."""

    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        return str(self.body["response_format"]["json_schema"]["name"])

    @property
    def seed(self) -> int:
        return int(self.body["seed"])

    @property
    def system(self) -> str:
        return str(self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        return str(self.body["messages"][1]["content"])

    @property
    def requirements(self) -> int:
        items: dict[str, Any] = self.body["response_format"]["json_schema"]["schema"]["properties"]["judgements"]
        return int(items["maxItems"])

    def data(self, heading: str) -> str:
        """The fenced text under the first heading that begins so."""
        found = re.search(re.escape(heading) + r"[^\n]*\n<<DATA (\w+)\n(.*?)\n\1 DATA>>", self.user, re.DOTALL)
        assert found, (heading, self.user)
        return found.group(2)


def judged(*entries: tuple[str, str]) -> str:
    """An answer of the judge: (judgement, quote) of each requirement."""
    return json.dumps(
        {
            "judgements": [
                {"requirement": i, "judgement": judgement, "quote": quote, "explanation": "scripted"}
                for i, (judgement, quote) in enumerate(entries)
            ]
        }
    )


def moved(decision: str, target: int | None = None) -> str:
    return json.dumps({"decision": decision, "target": target})


@dataclass
class ScriptedJudge:
    """`say` answers each call: the content of a completion, a status, or a whole response."""

    say: Say
    calls: list[Asked] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    url: str = ""

    async def start(self) -> None:
        app = Starlette(routes=[Route("/v1/chat/completions", self._complete, methods=["POST"])])
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        self._server = uvicorn.Server(
            uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
        )
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]))
        await until(lambda: self._server.started)

    async def stop(self) -> None:
        self._server.should_exit = True
        await self._task

    async def _complete(self, request: Request) -> Response:
        asked = Asked(json.loads(await request.body()))
        self.calls.append(asked)
        self.keys.append(request.headers.get("authorization"))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            said = self.say(asked)
            if isinstance(said, Awaitable):
                said = await said
        finally:
            self.at_once -= 1
        if isinstance(said, Response):
            return said
        if isinstance(said, int):
            return JSONResponse({"error": {"message": "scripted"}}, status_code=said)
        message = {"role": "assistant", "content": said}
        return JSONResponse({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    def asked(self, prompt: str) -> list[Asked]:
        return [call for call in self.calls if call.prompt == prompt]
