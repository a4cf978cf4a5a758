"""A relay in front of the queue's server whose line can be cut, for a real partition."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Line:
    """`url` leads to the server as long as the line is not cut."""

    def __init__(self, server_url: str, folder: Path) -> None:
        self._target = unquote(urlsplit(server_url).path)
        self._path = folder / "line.sock"
        self.url = server_url.replace(urlsplit(server_url).path, str(self._path))
        self._writers: set[asyncio.StreamWriter] = set()
        self.whole = True

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Line]:
        server = await asyncio.start_unix_server(self._relay, str(self._path))
        try:
            yield self
        finally:
            server.close()
            self.cut()

    def cut(self) -> None:
        self.whole = False
        for writer in list(self._writers):
            writer.transport.abort()

    def mend(self) -> None:
        self.whole = True

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.whole:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_unix_connection(self._target)
        self._writers |= {writer, far_writer}
        await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        self._writers -= {writer, far_writer}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()
