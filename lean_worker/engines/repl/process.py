"""One REPL process: started confined, asked one question at a time, killed at once with everything below it.

LeanInteract's `LeanServer` speaks the same protocol, and its models are used here, but not its process handling: it
cannot start the REPL inside a sandbox, never reads standard error (a full pipe stops Lean, which then looks like a
timeout), reads answers line by line in a thread that cannot be cancelled, and gives a child a second of grace before it
kills it, where a cancelled check has 200 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from typing import Any, cast

import psutil
from lean_interact.interface import BaseREPLQuery, CommandResponse, LeanError
from pydantic import ValidationError

from lean_worker.sandbox import Confined, Tier

_END = b"\n\n"  # Lean's JSON has no blank line inside
_STDERR_KEPT = 8_192
_EXIT_PATIENCE_S = 2.0
_FAMILY_S = 0.15


class ReplExited(Exception):
    """The REPL is gone. `status` as `subprocess` counts it, `errors` the end of its standard error."""

    def __init__(self, status: int | None, errors: str) -> None:
        super().__init__(f"the REPL exited with status {status}: {errors[-500:].strip() or 'no message'}")
        self.status = status
        self.errors = errors


class ReplConfused(Exception):
    """What came back is no answer: malformed JSON, output that nobody asked for, or more than is allowed."""


class _Wire(asyncio.SubprocessProtocol):
    """Collects what the process writes, as it comes: a pipe that nobody reads would stop Lean."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.output = bytearray()
        self.errors = bytearray()
        self.ended = False
        self.changed = asyncio.Event()
        self.exited = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            if len(self.output) <= self.most_bytes:  # beyond that the answer is lost anyway
                self.output += data
            self.changed.set()
        else:
            self.errors += data
            del self.errors[:-_STDERR_KEPT]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.ended = True
            self.changed.set()

    def process_exited(self) -> None:
        self.exited.set()


class ReplProcess:
    """A running REPL. Not safe for concurrent questions: the engine asks one at a time."""

    def __init__(self, transport: asyncio.SubprocessTransport, wire: _Wire, confined: Confined) -> None:
        self._transport = transport
        self._wire = wire
        self._confined = confined
        self._pid = transport.get_pid()
        self._family: list[psutil.Process] = []
        self._family_at = 0.0
        self._answered = False
        self.scratch = confined.scratch

    @classmethod
    async def start(cls, confined: Confined, most_bytes: int) -> ReplProcess:
        """Start it in a session of its own. Raises OSError."""
        try:
            transport, wire = await asyncio.get_running_loop().subprocess_exec(
                lambda: _Wire(most_bytes),
                *confined.argv,
                pass_fds=confined.pass_fds,
                env=confined.environment,
                start_new_session=True,
            )
        except BaseException:
            confined.close()
            raise
        _yields_to_us(transport.get_pid())
        confined.started()
        return cls(transport, wire, confined)

    @property
    def alive(self) -> bool:
        return self._transport.get_returncode() is None and not self._wire.ended

    async def ended(self) -> None:
        """Wait until the process is gone."""
        await self._wire.exited.wait()

    async def ask(self, query: BaseREPLQuery) -> CommandResponse | LeanError:
        """Send one command and wait for its answer, without a time limit.

        Raises:
            ReplExited: the process ended before it had answered.
            ReplConfused: the answer cannot be one.
        """
        reply = await self._exchange(query)
        try:
            if set(reply) == {"message"}:
                return LeanError.model_validate(reply)
            return CommandResponse.model_validate(reply)
        except ValidationError as error:
            raise ReplConfused(f"the REPL's answer has another shape: {error.errors()[0]['loc']}") from None

    async def _exchange(self, query: BaseREPLQuery) -> dict[str, Any]:
        if self._wire.output:
            raise ReplConfused("the REPL wrote more than its answer")
        line = query.model_dump_json(exclude_none=True, by_alias=True)
        stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))  # uvloop's is no subclass of it
        stdin.write(line.encode() + _END)
        raw = await self._read_answer()
        self._answered = True
        try:
            reply = json.loads(raw)
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ReplConfused(f"the REPL's answer is no JSON: {error}") from None
        if not isinstance(reply, dict):
            raise ReplConfused("the REPL's answer is no JSON object")
        return reply

    async def _read_answer(self) -> bytes:
        wire, searched = self._wire, 0
        while (end := wire.output.find(_END, searched)) < 0:
            searched = max(0, len(wire.output) - 1)
            if len(wire.output) > wire.most_bytes:
                raise ReplConfused(f"the REPL's answer is longer than {wire.most_bytes} bytes")
            if wire.ended:
                raise await self._exited()
            wire.changed.clear()
            await wire.changed.wait()
        answer = bytes(wire.output[:end])
        del wire.output[: end + len(_END)]
        return answer

    async def _exited(self) -> ReplExited:
        # It closed its output. Should it live on, it is of no use any more.
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._wire.exited.wait(), _EXIT_PATIENCE_S)
        await asyncio.sleep(0)  # let the rest of its standard error arrive
        self.kill()
        return ReplExited(self._transport.get_returncode(), self._wire.errors.decode(errors="replace"))

    def _members(self) -> list[psutil.Process]:
        """The process and those below it. In a confining tier they cannot change once it has answered.

        Elsewhere they are looked for at most every `_FAMILY_S`.
        """
        settled = self._answered and self._confined.tier is not Tier.LIMITS
        if self._family and (settled or time.monotonic() - self._family_at < _FAMILY_S):
            return self._family
        with contextlib.suppress(psutil.Error):
            family = [psutil.Process(pid) for pid in _family(self._pid)]
            if self._answered:
                self._family, self._family_at = family, time.monotonic()
            return family
        return []

    @property
    def rss_bytes(self) -> int:
        """Resident memory of the process and everything below it."""
        total = 0
        for member in self._members() if self.alive else []:
            with contextlib.suppress(psutil.Error):
                total += member.memory_info().rss
        return total

    @property
    def scratch_bytes(self) -> int:
        """What lies in its private folder; 0 where that is a file system of its own with a bound."""
        total = 0
        if self._confined.scratch_outside is not None:
            with contextlib.suppress(OSError):
                total = sum(entry.stat().st_size for entry in os.scandir(self._confined.scratch_outside))
        return total

    @property
    def cpu_s(self) -> float:
        """Processor time that it has used, seconds."""
        total = 0.0
        for member in self._members() if self.alive else []:
            with contextlib.suppress(psutil.Error):
                times = member.cpu_times()
                total += times.user + times.system
        return total

    def kill(self) -> None:
        """Kill the process's own group at once; safe to call twice. Its parent's group is never touched."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)

    async def close(self) -> None:
        """Kill, wait until it is gone, and remove its private folder."""
        self.kill()
        try:
            await self._wire.exited.wait()
        finally:
            self._transport.close()
            self._confined.close()


def _yields_to_us(pid: int) -> None:
    """A command wakes Lean up, which then must not push its supervisor off the core, where the others' answers wait."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            if os.sched_getscheduler(pid) == os.SCHED_OTHER:  # else somebody chose another
                os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))


def _family(pid: int) -> list[int]:
    """A process and those below it. Asks the kernel for children where it tells, else reads the table of processes."""
    family = [pid]
    for member in family:  # it grows as we go
        try:
            for thread in os.scandir(f"/proc/{member}/task"):
                with open(f"{thread.path}/children", encoding="ascii") as children:
                    family += map(int, children.read().split())
        except ProcessLookupError:
            continue  # it has ended
        except FileNotFoundError:
            if os.path.exists(f"/proc/{member}/task/{member}/children"):
                continue  # one of its threads has ended
            if os.path.exists(f"/proc/{member}"):  # a kernel without these files
                return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    return family
