"""One host process: a Node.js that runs the embedded Lean and speaks JSON lines."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from pathlib import Path
from typing import Any

from lean_worker.engines.base import EngineUnavailable
from lean_worker.engines.embedded.identity import HOST
from lean_worker.engines.embedded.layout import Installation, node_executable
from lean_worker.engines.embedded.programs import require_unchanged

_START_TIMEOUT_S = 60.0
_LINE_LIMIT = 64 << 20  # bytes of one reply
_PAGE_BYTES = 4096

Reply = dict[str, Any]


class HostDied(Exception):
    """The process ended before it answered."""


class HostProcess:
    """A started host. It answers one request at a time; `kill` is always safe and ends whatever it does."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.warm = False  # whether it started with machine code that was made before
        self._requests = 0
        self._answering: asyncio.Task[Reply] | None = None  # outlives the cancellation of who asked
        self.used = False  # whether it has run anything besides loading a snapshot
        self.environment: tuple[str, ...] | None = None  # imports of the loaded snapshot
        self.loaded_rss_bytes = 0  # with nothing but that

    @classmethod
    async def start(cls, installation: Installation, memory_mb: int, *, writable: Path | None = None) -> HostProcess:
        """`writable` is the only folder where the process may write, for `save`. Raises `EngineUnavailable`."""
        await require_unchanged(installation)
        code = installation.machine_code
        before = _identity(code)
        if before is None:
            return await cls._start(installation, memory_mb, None, writable)
        try:
            host = await cls._start(installation, memory_mb, code, writable)
        except EngineUnavailable:  # V8 itself may have ended over it
            host = await cls._start(installation, memory_mb, None, writable)
        if not host.warm and _identity(code) == before:
            with contextlib.suppress(OSError):  # of no use to any process such as this
                code.unlink()
        return host

    @classmethod
    async def _start(
        cls, installation: Installation, memory_mb: int, code: Path | None, writable: Path | None
    ) -> HostProcess:
        options = {
            "js": str(installation.js),
            "wasm": str(installation.wasm),
            "machineCode": None if code is None else str(code),
            "memoryMb": memory_mb,
        }
        readable = [HOST, installation.js, installation.wasm, installation.snapshots, installation.machine_codes]
        try:
            process = await asyncio.create_subprocess_exec(
                node_executable(),
                # The host itself only reads these files: no writing, no process, no add-on, no network use.
                "--permission",
                "--allow-worker",
                "--expose-gc",
                *(f"--allow-fs-read={_as_rule(path)}" for path in readable),
                *([] if writable is None else [f"--allow-fs-write={_as_rule(writable)}"]),
                HOST / "supervisor.js",
                json.dumps(options),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={},
                cwd=installation.root,
                limit=_LINE_LIMIT,
            )
        except OSError as error:
            raise EngineUnavailable(f"cannot start Node.js: {error}") from error
        host = cls(process)
        try:
            first = await asyncio.wait_for(host._read(), _START_TIMEOUT_S)
            if not first.get("ready"):
                raise HostDied(str(first.get("detail")))
        except (HostDied, asyncio.TimeoutError) as error:
            await host.kill()
            raise EngineUnavailable(f"the Lean host did not start: {error or 'it does not answer'}") from None
        except BaseException:
            await host.kill()
            raise
        host.warm = bool(first["warm"])
        return host

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def ended(self) -> None:
        """Wait until the process is gone."""
        await self._process.wait()

    async def load(self, path: Path, imports: tuple[str, ...]) -> Reply:
        """Raises `HostDied`."""
        reply = await self._ask({"op": "load", "path": str(path)})
        self.environment = imports if reply.get("status") == "loaded" else None
        if not self.used:
            self.loaded_rss_bytes = self.rss_bytes
        return reply

    async def check(self, request: Reply) -> Reply:
        """Raises `HostDied`. After a cancellation `interrupted_within` comes next, or `kill`."""
        self.used = True
        return await self._ask({"op": "check", **request})

    async def save(self, path: Path) -> Reply:
        """Write the machine code that it has by now. Raises `HostDied`."""
        return await self._ask({"op": "save", "path": str(path)})

    async def interrupted_within(self, seconds: float) -> bool:
        """Ask Lean to stop the running check, as at its time limit; whether its reply came in time."""
        if self._answering is None:
            return False
        try:
            self._write({"op": "interrupt"})
            reply = await asyncio.wait_for(asyncio.shield(self._answering), seconds)
        except (asyncio.TimeoutError, HostDied):
            return False
        return reply.get("status") == "done"

    def end(self) -> None:
        """End the process at once; `kill` also waits until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def kill(self) -> None:
        self.end()
        await self._process.wait()
        if self._answering is not None:
            self._answering.cancel()
            self._answering = None

    @property
    def rss_bytes(self) -> int:
        if self._process.returncode is not None:
            return 0
        try:
            statm = Path(f"/proc/{self._process.pid}/statm").read_text()
        except OSError:
            return 0
        return int(statm.split()[1]) * _PAGE_BYTES

    async def _ask(self, request: Reply) -> Reply:
        self._requests += 1
        self._write({"id": self._requests, **request})
        self._answering = asyncio.create_task(self._read())
        self._answering.add_done_callback(_seen)
        reply = await asyncio.shield(self._answering)
        self._answering = None
        return reply

    def _write(self, request: Reply) -> None:
        """Raises `HostDied`."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        except (OSError, RuntimeError) as error:  # uvloop's word for a closed pipe is a RuntimeError
            raise HostDied(f"it takes no more requests: {error}") from error

    async def _read(self) -> Reply:
        assert self._process.stdout is not None
        try:
            line = await self._process.stdout.readline()
        except (OSError, ValueError) as error:
            raise HostDied(str(error)) from error
        if not line.endswith(b"\n"):
            raise HostDied("it ended")
        reply: Reply = json.loads(line)
        return reply


def _seen(answering: asyncio.Task[Reply]) -> None:
    """Whoever asked may have left, and the host ends afterwards: that is no exception which nobody retrieved."""
    if not answering.cancelled():
        answering.exception()


def _identity(path: Path) -> tuple[int, int, int] | None:
    """Which file it is; None when there is none that we can read."""
    try:
        found = path.stat()
    except OSError:
        return None
    readable = path.is_file() and os.access(path, os.R_OK)
    return (found.st_dev, found.st_ino, found.st_mtime_ns) if readable else None


def _as_rule(path: Path) -> str:
    return f"{path}/*" if path.is_dir() else str(path)
