"""A model behind an HTTP server: started with it, asked for its health, stopped with it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from gpu_evaluator.engines.base import EngineFault
from gpu_evaluator.engines.serving.link import Link
from gpu_evaluator.engines.serving.servers import ModelServer


class ServedModel(ABC):
    """What every engine behind a server does alike. `_open` is what each checks for itself."""

    def __init__(self, server: ModelServer, key: str | None = None) -> None:
        self.server = server
        self._key = key
        self._link: Link | None = None

    async def start(self) -> None:
        self._link = Link(await self.server.start(), self._key)
        try:
            await self._open()
        except EngineFault:
            await self.stop()
            raise

    async def healthy(self) -> bool:
        return self._link is not None and await self._link.healthy()

    async def stop(self) -> None:
        if self._link is not None:
            await self._link.close()
            self._link = None
        await self.server.stop()

    @property
    def running(self) -> bool:
        return self._link is not None

    @property
    def link(self) -> Link:
        """Raises `EngineFault` while the server does not run."""
        if self._link is None:
            raise EngineFault("the server is not running")
        return self._link

    @abstractmethod
    async def _open(self) -> None:
        """Read what the server says of the model, and check what has to hold before the first program.

        Raises `EngineFault`.
        """
