"""The worker's own small HTTP port: `/metrics`, `/healthz` (alive), `/readyz` (can check now, or what is missing)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus

from prometheus_client import REGISTRY, generate_latest

from lean_worker.worker import Worker

_LONGEST_HEAD = 8192  # bytes
_PATIENCE_S = 5.0
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_JSON = "application/json"

Answer = tuple[HTTPStatus, str, bytes]


def missing(worker: Worker) -> list[str]:
    """What keeps the worker from checking now; empty when it can."""
    reasons = []
    if worker.draining:
        reasons.append("it is shutting down")
    if not any(slot.ready for slot in worker.slots):
        reasons.append("no engine is ready")
    if not worker.queue_answers:
        reasons.append("the queue does not answer")
    return reasons


def answer(worker: Worker, target: str) -> Answer:
    """The answer to `GET target`."""
    if target == "/healthz":
        return HTTPStatus.OK, _JSON, b'{"status":"ok"}'
    if target == "/readyz":
        reasons = missing(worker)
        status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        return status, _JSON, json.dumps({"status": "not ready" if reasons else "ready", "missing": reasons}).encode()
    if target == "/metrics":
        worker.measure()
        return HTTPStatus.OK, _METRICS_TYPE, generate_latest(REGISTRY)
    return HTTPStatus.NOT_FOUND, _JSON, b'{"status":"not found"}'


@contextlib.asynccontextmanager
async def serve(worker: Worker, host: str, port: int) -> AsyncIterator[int]:
    """Answer on `host:port` while the context is open; yields the port. Raises `OSError` when it cannot listen."""
    server = await asyncio.start_server(_handler(lambda target: answer(worker, target)), host, port)
    async with server:
        yield server.sockets[0].getsockname()[1]


def _handler(
    respond: Callable[[str], Answer],
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _PATIENCE_S)
            words = head[:_LONGEST_HEAD].split(b"\r\n", 1)[0].decode("latin-1").split(" ")
            if len(words) == 3 and words[0] in ("GET", "HEAD"):
                status, kind, body = respond(words[1].split("?", 1)[0])
            else:
                status, kind, body = HTTPStatus.METHOD_NOT_ALLOWED, _JSON, b'{"status":"only GET"}'
            lines = (
                f"HTTP/1.1 {status.value} {status.phrase}",
                f"Content-Type: {kind}",
                f"Content-Length: {len(body)}",
                "Connection: close",
            )
            writer.write("\r\n".join([*lines, "", ""]).encode() + (b"" if words[0] == "HEAD" else body))
            await asyncio.wait_for(writer.drain(), _PATIENCE_S)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError, ConnectionError):
            pass  # a caller that goes away or sends no request
        finally:
            writer.close()

    return handle
