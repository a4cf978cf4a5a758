"""ASGI middleware that sends answers: in pieces, so that a slow reader is noticed, and compressed on the way."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reward_gateway.answers.encoding import Encoder, choose, compressible, make_encoder
from reward_gateway.bodies.stream import BodyBudget
from reward_gateway.pace import Pace

PIECE_BYTES = 65_536
_SMALLEST_BYTES = 1_024  # below, an encoding costs more than it saves


class Sending:
    """Wraps the application. Answers that are written as they come (events, lines) are passed on at once."""

    def __init__(self, app: ASGIApp, budget: BodyBudget) -> None:
        self._app = app
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        head_only = scope["method"] == "HEAD"
        encoding = None if head_only else choose(", ".join(Headers(scope=scope).getlist("accept-encoding")))
        answer = _Answer(send, encoding, self._budget)
        try:
            await self._app(scope, receive, answer.send)
        finally:
            answer.forget()


class _Answer:
    """One answer. `start` is held back until it is known how large the body is, unless nobody knows that yet."""

    def __init__(self, send: Send, encoding: str | None, budget: BodyBudget) -> None:
        self._send = send
        self._encoding = encoding
        self._budget = budget
        self._held = 0
        self._start: Message | None = None
        self._encoder: Encoder | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if not compressible(headers.get("content-type", "")) or "content-encoding" in headers:
                self._encoding = None
            else:
                headers.add_vary_header("Accept-Encoding")
            self._start = message
            if "content-length" not in headers and message["status"] not in (204, 304):
                await self._begin(encode=True)
        elif message["type"] == "http.response.body":
            await self._body(message.get("body", b""), more=message.get("more_body", False))
        else:
            await self._send(message)

    def forget(self) -> None:
        self._budget.give(self._held)
        self._held = 0

    async def _begin(self, *, encode: bool) -> None:
        assert self._start is not None
        start, self._start = self._start, None
        if encode and self._encoding is not None:
            self._encoder = make_encoder(self._encoding)
            headers = MutableHeaders(scope=start)
            headers["Content-Encoding"] = self._encoding
            del headers["content-length"]
        await self._send(start)

    async def _body(self, body: bytes, *, more: bool) -> None:
        self._budget.hold(len(body))
        self._held += len(body)
        if self._start is not None:
            await self._begin(encode=more or len(body) >= _SMALLEST_BYTES)
        pace = Pace()
        for at in range(0, len(body), PIECE_BYTES):
            piece = body[at : at + PIECE_BYTES]
            last = at + PIECE_BYTES >= len(body)
            if self._encoder is not None:
                piece = self._encoder.feed(piece, flush=last and more)
            if piece:
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
            await pace.rest()
        if not more:
            rest = b"" if self._encoder is None else self._encoder.end()
            await self._send({"type": "http.response.body", "body": rest, "more_body": False})
        self.forget()
