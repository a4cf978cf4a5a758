"""HTTP connections that cannot be kept open by doing little: slow heads, endless heads, answers that nobody reads."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from services.contracts.problems import ProblemCode
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.problems import ProblemError

MAX_HEAD_BYTES = 65_536
"""Of the request line with all headers; also of what stands around the chunks of a body."""

_REFUSAL = b"HTTP/1.1 %s\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """`head_s`: a request's head must be complete so soon after it began (or after the connection was made).
    `refused_s`: so long a client may go on sending a body whose request has its answer. `read_s`: so soon a client must
    have read what waits for it (at most about 64 KiB at a time). `connections`: at once."""

    head_s: float
    refused_s: float
    read_s: float
    connections: int


class GuardedConnection(HttpToolsProtocol):
    """uvicorn's protocol with `limits`, which a subclass made by `guarded` sets."""

    limits: ConnectionLimits
    _unaccounted = 0  # bytes that were neither part of a complete head nor of a body
    _in_head = True
    _incoming: asyncio.TimerHandle | None = None
    _outgoing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(b"503 Service Unavailable", "too_many")
            return
        self._incoming = self.loop.call_later(self.limits.head_s, self._drop, "slow_head")

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._unaccounted += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._unaccounted > MAX_HEAD_BYTES:
            self._refuse(b"431 Request Header Fields Too Large", "large_head")
        elif self._in_head:
            if self._incoming is None and self._unaccounted:
                self._incoming = self.loop.call_later(self.limits.head_s, self._drop, "slow_head")
        elif self.cycle is not None and self.cycle.response_complete and self._incoming is None:
            self._incoming = self.loop.call_later(self.limits.refused_s, self._drop, "slow_head")

    def on_headers_complete(self) -> None:
        self._in_head, self._unaccounted = False, 0
        self._has_come()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unaccounted = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head, self._unaccounted = True, 0
        self._has_come()
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        self._has_read()
        super().resume_writing()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing() and self.transport.get_write_buffer_size():
            self._await_reader()  # it closes once the rest is read

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self._drop("slow_reader")
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """Also what is no HTTP is answered by a problem document; there is no request yet that the edge could see."""
        metrics.PROBLEMS.labels(ProblemCode.MALFORMED_REQUEST.value).inc()
        answer = ProblemError(ProblemCode.MALFORMED_REQUEST, msg).response(secrets.token_hex(8))
        head = [
            b"HTTP/1.1 400 Bad Request",
            *(b": ".join(header) for header in answer.raw_headers),
            b"connection: close",
        ]
        self.transport.write(b"\r\n".join([*head, b"", bytes(answer.body)]))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_come()
        self._has_read()
        super().connection_lost(exc)

    def _has_come(self) -> None:
        if self._incoming is not None:
            self._incoming.cancel()
            self._incoming = None

    def _has_read(self) -> None:
        if self._outgoing is not None:
            self._outgoing.cancel()
            self._outgoing = None

    def _await_reader(self) -> None:
        if self._outgoing is None:
            self._outgoing = self.loop.call_later(self.limits.read_s, self._drop, "slow_reader")

    def _refuse(self, status: bytes, cause: str) -> None:
        metrics.CONNECTIONS_DROPPED.labels(cause).inc()
        self.transport.write(_REFUSAL % status)
        self.transport.close()

    def _drop(self, cause: str) -> None:
        """Close without waiting for anybody; what waits to be sent is freed."""
        metrics.CONNECTIONS_DROPPED.labels(cause).inc()
        get_logger().info("connection_dropped", cause=cause, client=self.client and self.client[0])
        self.transport.abort()


def guarded(limits: ConnectionLimits) -> type[GuardedConnection]:
    """The protocol with these limits, for uvicorn's setting `http`."""
    return type("GuardedConnection", (GuardedConnection,), {"limits": limits})
