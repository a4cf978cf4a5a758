"""The embedded engine: a warm Lean in WebAssembly that starts every check from the same memory image."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence

from lean_worker.engines.base import EngineUnavailable, HeaderError
from lean_worker.engines.embedded.answer import read_answer, without_proof
from lean_worker.engines.embedded.identity import LEAN_COMMIT, engine_identity
from lean_worker.engines.embedded.layout import Installation
from lean_worker.engines.embedded.process import HostDied, HostProcess, Reply
from lean_worker.engines.embedded.snapshots import discard_snapshot, ensure_snapshot
from services.contracts.lean import CheckAnswer, CheckStatus, CheckTask, EngineIdentity, Severity
from services.contracts.outcomes import Profile
from services.runtime import metrics

# From the time limit to the end of the process, for what does not look at the heartbeat counter.
_GRACE_S = 1.5
# The host keeps its own clock; ours only guards against a host that hangs.
_HOST_HANGS_S = 5.0
# A cancelled check may stop by itself for so long; then its process is killed.
_CANCEL_S = 0.1
_OPEN_TIMEOUT_S = 60.0

_INIT: tuple[str, ...] = ("Init",)
_SMALL = frozenset({_INIT, ("Init", "Std")})
_RSS_LIMIT = 1_200_000_000  # bytes, with Init or Std
_RSS_LIMIT_LARGE = 1_500_000_000  # bytes, once a larger environment was loaded
_RSS_ROOM = 150_000_000  # bytes over a loaded environment that are never too much: a new process would have no less


class EmbeddedEngine:
    """Checks candidates in one Node.js process, one at a time; see `Engine` for the contract.

    Args:
        installation: an installed embedded Lean.
        environments: module names whose environments have a snapshot before `start` returns; the first is loaded.
            Others are imported when a program first asks for them.
        memory_mb: hard cap on Lean's memory, MiB. The process takes about 500 MB more.
    """

    def __init__(
        self, installation: Installation, *, environments: Sequence[str] = ("Init",), memory_mb: int = 1024
    ) -> None:
        self._installation = installation
        self._environments = [_with_init(name) for name in environments] or [_INIT]
        self._memory_mb = memory_mb
        self._wanted = self._environments[0]
        self._host: HostProcess | None = None
        self._spawning: asyncio.Task[HostProcess] | None = None
        self._busy = asyncio.Lock()
        self._grown = False
        self._restarts = 0

    @property
    def restarts(self) -> int:
        return self._restarts

    @property
    def identity(self) -> EngineIdentity:
        return engine_identity()

    @property
    def rss_bytes(self) -> int:
        return self._host.rss_bytes if self._host is not None else 0

    async def start(self) -> None:
        """Build missing snapshots, start the process and load the first environment."""
        self._installation.require()
        async with self._busy:
            for imports in self._environments:
                try:
                    await ensure_snapshot(self._installation, imports)
                except HeaderError as error:
                    raise EngineUnavailable(str(error)) from error
            await self._ready()

    async def open(self, header: str) -> None:
        """Load the header's environment and elaborate its preamble once."""
        answer = await self.check(CheckTask(code=header, timeout_s=_OPEN_TIMEOUT_S))
        if answer.header_error is not None:
            raise HeaderError(answer.header_error)
        if answer.status is not CheckStatus.DONE:
            raise HeaderError(f"the header does not finish: {answer.detail}")
        for message in answer.messages:
            if message.severity is Severity.ERROR:
                where = f"{message.pos.line}:{message.pos.column}: " if message.pos else ""
                raise HeaderError(f"the header does not compile: {where}{message.data}")

    async def check(self, task: CheckTask) -> CheckAnswer:
        """Run one check. Raises `EngineUnavailable` when no process can be started or its answers make no sense."""
        async with self._busy:
            host = await self._ready()
            begin = time.monotonic()
            try:
                reply = await self._run(host, task)
            except asyncio.CancelledError:
                await self._stop_running(host)
                raise
            except HeaderError as error:
                return CheckAnswer(status=CheckStatus.DONE, elapsed_s=time.monotonic() - begin, header_error=str(error))
            except BaseException:
                self._discard("unavailable")  # whatever the process still does, the next check must not meet it
                raise
            answer = read_answer(reply, reply.get("elapsedMs", (time.monotonic() - begin) * 1000) / 1000)
            if answer.status in _SPOILED:
                self._discard(answer.status.value)
            elif reply.get("ended") or self._too_large(host):
                self._discard("unavailable" if reply.get("ended") else "growth")
            return answer

    async def restart(self, cause: str) -> None:
        """A process that has not checked anything yet is as clean as a new one and is kept."""
        async with self._busy:
            if self._host is not None and self._host.used:
                self._discard(cause)
            await self._ready()

    async def lost(self) -> None:
        while True:
            if self._host is not None:
                host = self._host
                await host.ended()
                if host is self._host:
                    return
            elif self._spawning is not None:
                await asyncio.wait({self._spawning})
                try:
                    await self._ready()
                except (EngineUnavailable, HeaderError):
                    return
            else:
                return

    async def stop(self) -> None:
        if self._spawning is not None:
            self._spawning.cancel()
            with contextlib.suppress(asyncio.CancelledError, EngineUnavailable):
                await self._spawning
            self._spawning = None
        if self._host is not None:
            await self._host.kill()
            self._host = None

    async def _ready(self) -> HostProcess:
        """The process, started in the background or now."""
        if self._host is not None and not self._host.alive:
            self._discard("exited")  # it ended while nothing ran
        if self._host is None:
            if self._spawning is None:
                self._spawning = asyncio.create_task(self._spawn(None))
            spawning = self._spawning
            try:
                self._host = await asyncio.shield(spawning)
            finally:
                if spawning.done():
                    self._spawning = None
        return self._host

    async def _spawn(self, before: HostProcess | None) -> HostProcess:
        """A new process, as soon as the memory of the one before is free."""
        if before is not None:
            await before.kill()
        await ensure_snapshot(self._installation, self._wanted)
        host = await HostProcess.start(self._installation, self._memory_mb)
        try:
            await self._load(host, self._wanted)
        except BaseException:
            await host.kill()
            raise
        return host

    def _discard(self, cause: str) -> None:
        """End the process and start the next one in the background: the next check waits as little as can be."""
        host, self._host = self._host, None
        self._grown = False
        if host is not None:
            self._restarts += 1
            metrics.ENGINE_RESTARTS.labels(cause).inc()
            host.end()
            self._spawning = asyncio.create_task(self._spawn(host))

    async def _stop_running(self, host: HostProcess) -> None:
        """Leave nothing of a cancelled check: what Lean stops in time spares a new process."""
        if not await host.interrupted_within(_CANCEL_S):
            self._discard("interrupted")
        elif self._too_large(host):
            self._discard("growth")

    async def _load(self, host: HostProcess, imports: tuple[str, ...]) -> None:
        for _ in range(2):
            path = await ensure_snapshot(self._installation, imports)
            try:
                reply = await host.load(path, imports)
            except HostDied as error:
                raise EngineUnavailable(f"the Lean host died while loading {path.name}: {error}") from error
            if reply.get("status") == "loaded":
                if reply["lean"]["commit"] != LEAN_COMMIT:
                    raise EngineUnavailable(f"the snapshot is of Lean {reply['lean']['version']}")
                self._wanted = imports
                self._grown = self._grown or imports not in _SMALL
                return
            await discard_snapshot(path)
        raise EngineUnavailable(f"the snapshot of {', '.join(imports)} is damaged: {reply.get('detail')}")

    async def _run(self, host: HostProcess, task: CheckTask) -> Reply:
        request = {
            "code": task.code,
            "header": task.header,
            "statement": None if task.statement is None else without_proof(task.statement),
            "heartbeats": task.heartbeats,
            "softMs": round(task.timeout_s * 1000),
            "hardMs": round((task.timeout_s + _GRACE_S) * 1000),
            "printed": task.profile is Profile.PAPER,
            "tactics": task.tactics,
        }
        patience = task.timeout_s + _GRACE_S + _HOST_HANGS_S
        reply = await self._ask(host, request, patience)
        if reply["status"] == "needs":
            await self._load(host, tuple(reply["imports"]))
            reply = await self._ask(host, request, patience)
            if reply["status"] == "needs":
                raise EngineUnavailable("the Lean host asks for an environment that it has")
        return reply

    async def _ask(self, host: HostProcess, request: Reply, patience_s: float) -> Reply:
        try:
            return await asyncio.wait_for(host.check(request), patience_s)
        except asyncio.TimeoutError:
            return {"status": "timeout", "detail": "the Lean host does not answer", "ended": True}
        except HostDied as error:
            return {"status": "crashed", "detail": f"the Lean host ended: {error}", "ended": True}

    def _too_large(self, host: HostProcess) -> bool:
        limit = _RSS_LIMIT_LARGE if self._grown else _RSS_LIMIT
        return host.rss_bytes > max(limit, host.loaded_rss_bytes + _RSS_ROOM)


# Memory is not given back after these, and a crash may have left anything behind outside of the image.
_SPOILED = frozenset({CheckStatus.TIMEOUT, CheckStatus.OUT_OF_MEMORY, CheckStatus.CRASHED})


def _with_init(module: str) -> tuple[str, ...]:
    return _INIT if module == "Init" else ("Init", module)
