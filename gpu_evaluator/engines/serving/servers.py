"""A model server: somebody else's, at a URL, or a child process of ours."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import httpx

from gpu_evaluator.engines.base import EngineFault

_POLL_S = 0.2
_STOP_S = 15.0


class ModelServer(Protocol):
    async def start(self) -> str:
        """The URL of the server, which answers. Raises `EngineFault`."""
        ...

    async def stop(self) -> None: ...


class RemoteServer:
    """A server that somebody else keeps running."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    async def start(self) -> str:
        if not await _answers(self._url):
            raise EngineFault(f"{self._url}/health does not answer")
        return self._url

    async def stop(self) -> None:
        """Nothing to stop."""


class ChildServer:
    """A server that is started with `command(port)`, on the loopback interface, and dies with this process.

    `environment` is added to this process's own. `start_s`: longest start, seconds. Servers that share `turn` start one
    after the other: each measures the memory that is left.
    """

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        *,
        environment: Mapping[str, str] | None = None,
        start_s: float,
        turn: asyncio.Lock | None = None,
    ) -> None:
        self._command = command
        self._environment = environment or {}
        self._start_s = start_s
        self._turn = turn or asyncio.Lock()
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> str:
        await self.stop()
        async with self._turn:
            return await self._start()

    async def stop(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        _signal_group(process.pid, signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), _STOP_S)
        except asyncio.TimeoutError:
            pass
        finally:
            _signal_group(process.pid, signal.SIGKILL)  # also what it left behind
            await process.wait()

    async def _start(self) -> str:
        port = _free_port()
        arguments = self._command(port)
        try:
            self.process = await asyncio.create_subprocess_exec(
                *arguments,
                env={**os.environ, **self._environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=sys.stderr,
                start_new_session=True,  # its own children are stopped with it
                preexec_fn=_die_with_parent,
            )
        except OSError as error:
            raise EngineFault(f"cannot run {arguments[0]!r}: {error.strerror}") from error
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + self._start_s
        try:
            while not await _answers(url):
                if self.process.returncode is not None:
                    raise EngineFault(f"{arguments[0]} ended with status {self.process.returncode} at its start")
                if time.monotonic() > deadline:
                    raise EngineFault(f"{arguments[0]} does not answer after {self._start_s:g} s")
                await asyncio.sleep(_POLL_S)
        except BaseException:
            await self.stop()
            raise
        return url


async def _answers(url: str) -> bool:
    try:
        async with httpx.AsyncClient(timeout=5.0, trust_env=False) as client:
            return (await client.get(f"{url}/health")).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> None:
    """In the child, before exec: have the kernel send SIGTERM when this process dies, however it dies (Linux only)."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
