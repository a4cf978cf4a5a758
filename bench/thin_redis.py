"""A client of Redis that does little, so that thousands of simulated processes fit into one.

It stands for `redis.asyncio.Redis` under a `JobQueue`, whose commands go over the wire as always; only what the queue
calls is here, without checks, retries or metrics. A call under way has a connection of its own, as with the real one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import hiredis
from redis.exceptions import ConnectionError, NoScriptError, ResponseError


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._reader = hiredis.Reader()
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(ConnectionError("the connection is gone"))
        self._waiting.clear()

    def send(self, commands: Sequence[tuple[Any, ...]]) -> list[asyncio.Future[Any]]:
        if self.transport is None:
            raise ConnectionError("the connection is gone")
        loop = asyncio.get_running_loop()
        replies = [loop.create_future() for _ in commands]
        self._waiting.extend(replies)
        self.transport.write(b"".join(hiredis.pack_command(command) for command in commands))  # type: ignore[attr-defined]
        return replies


class ThinRedis:
    """For a server on a Unix socket (`unix://:PASSWORD@PATH`) or `redis://[:PASSWORD@]HOST:PORT`."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._idle: list[_Connection] = []
        self.connection_pool = SimpleNamespace(connection_kwargs={})

    async def execute_command(self, *command: Any) -> Any:
        return (await self.execute_all([command]))[0]

    async def execute_all(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        connection = self._idle.pop() if self._idle else await self._connect()
        try:
            replies = [await reply for reply in connection.send(commands)]
        except BaseException:
            if connection.transport is not None:
                connection.transport.abort()  # an answer may still be on its way to nobody
            raise
        self._idle.append(connection)
        for reply in replies:
            if isinstance(reply, hiredis.ReplyError):
                raise NoScriptError(str(reply)) if str(reply).startswith("NOSCRIPT") else ResponseError(str(reply))
        return replies

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        if self._parts.scheme == "unix":
            _, connection = await loop.create_unix_connection(_Connection, unquote(self._parts.path))
        else:
            host, port = self._parts.hostname, self._parts.port or 6379
            _, connection = await loop.create_connection(_Connection, host, port)
        if self._parts.password:
            (answer,) = [await reply for reply in connection.send([("AUTH", unquote(self._parts.password))])]
            if answer != b"OK":
                raise ConnectionError("the password is wrong")
        return connection

    async def blpop(self, keys: Sequence[str], timeout: float) -> Any:
        return await self.execute_command("BLPOP", *keys, timeout)

    async def zrange(self, name: str, start: int, stop: int) -> Any:
        return await self.execute_command("ZRANGE", name, start, stop)

    async def mget(self, names: Sequence[str]) -> Any:
        return await self.execute_command("MGET", *names)

    def pipeline(self, transaction: bool) -> _Pipeline:
        return _Pipeline(self)

    async def aclose(self) -> None:
        for connection in self._idle:
            if connection.transport is not None:
                connection.transport.close()


class _Pipeline:
    """The two commands of `services.queue.streams.follow`."""

    def __init__(self, redis: ThinRedis) -> None:
        self._redis = redis
        self._commands: list[tuple[Any, ...]] = []

    def xdel(self, stream: str, *identities: bytes) -> None:
        self._commands.append(("XDEL", stream, *identities))

    def xread(self, streams: dict[str, str], count: int, block: int) -> None:
        ((stream, since),) = streams.items()
        self._commands.append(("XREAD", "COUNT", count, "BLOCK", block, "STREAMS", stream, since))

    async def execute(self) -> list[Any]:
        answers = await self._redis.execute_all(self._commands)
        for _, entries in answers[-1] or ():
            for entry in entries:
                entry[1] = dict(zip(entry[1][::2], entry[1][1::2], strict=True))
        return answers
