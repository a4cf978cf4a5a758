"""The native engine: a real toolchain, Mathlib and all, through the Lean REPL, each REPL a confined child.

A candidate runs as one command in the pristine environment of its own imports, never behind another candidate. What
the REPL says about it is text that the candidate can shape, so beyond its errors nothing of it is believed: the facts
come from probes (`probes`, `investigation`). A REPL never frees memory, so it is replaced often: on growth, after a
number of checks, for one import block too many, and after everything that ended badly.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from lean_worker.engines.base import EngineUnavailable, HeaderError
from lean_worker.engines.repl import answers
from lean_worker.engines.repl.declarations import declared_theorems
from lean_worker.engines.repl.expectation import Expectation
from lean_worker.engines.repl.faults import Ending, ended, kernel_refusal
from lean_worker.engines.repl.investigation import Investigator
from lean_worker.engines.repl.launch import WHOLE_LIFE_CPU_S, Launcher, prepare
from lean_worker.engines.repl.plain import is_plain
from lean_worker.engines.repl.probes import ProbeFault
from lean_worker.engines.repl.process import ReplConfused, ReplExited, ReplProcess
from lean_worker.engines.repl.program import Program, split_program
from lean_worker.engines.repl.selftest import Replay, try_replay
from lean_worker.engines.repl.session import ReplayRefused, Session
from lean_worker.sandbox import Tier
from services.contracts.lean import (
    CheckAnswer,
    CheckStatus,
    CheckTask,
    EngineIdentity,
    Message,
    Severity,
    TargetFacts,
)
from services.proofs.policy import DEFAULT_HEARTBEATS
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.settings import ReplSettings

_MIB = 1 << 20
_MOST_OUTPUT = 64 * _MIB  # of one answer
_GROWN = 0.75  # of the memory limit: then the REPL is replaced before the next check
_WATCH_S = 0.2
_OLD = 0.5  # of the processor time of its whole life

T = TypeVar("T")


class ReplEngine:
    """One REPL process and what replaces it. See `lean_worker.engines.base.Engine`."""

    def __init__(self, settings: ReplSettings) -> None:
        self._settings = settings
        self._launcher: Launcher | None = None
        self._session: Session | None = None
        self._printing: str | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._investigator = Investigator()
        self._replay = Replay(works=False, asks_kernel=False)
        self._lock = asyncio.Lock()
        self._restarts = 0
        self._log = get_logger()

    @property
    def identity(self) -> EngineIdentity:
        """Known once started; the tier is part of it, since the tiers find out different facts."""
        launcher = self._launched()
        return EngineIdentity(
            engine="repl",
            toolchain=launcher.toolchain,
            environment=f"{launcher.environment_hash}+{self._settings.tier}",
        )

    @property
    def sandbox(self) -> Tier:
        """The tier of the sandbox in force. Raises EngineUnavailable before the start."""
        return self._launched().tier

    @property
    def restarts(self) -> int:
        return self._restarts

    @property
    def rss_bytes(self) -> int:
        return self._session.process.rss_bytes if self._session else 0

    async def start(self) -> None:
        """Find the REPL and the sandbox, start a process and try it. Raises EngineUnavailable."""
        async with self._lock:
            if self._launcher is None:
                launcher = await prepare(self._settings)
                self._replay = await self._self_test(launcher)
                self._launcher = launcher
            session = await self._ready("")
            self._printing = await self._ours(session, session.options(), "the first question")
            self._log.info(
                "repl_started",
                sandbox=str(self._launcher.tier),
                tier=self._settings.tier,
                replay_works=self._replay.works,
                replay_asks_kernel=self._replay.asks_kernel,
                toolchain=self._launcher.toolchain,
            )

    async def open(self, header: str) -> None:
        """Make a header's imports and preamble warm. Raises HeaderError or EngineUnavailable."""
        program = split_program(header)
        async with self._lock:
            session = await self._ready(program.imports)
            opening = session.preamble(program.imports, program.body, DEFAULT_HEARTBEATS)
            await self._ours(session, opening, "opening a header")

    async def restart(self, cause: str) -> None:
        """Throw the process away and start a clean one. Raises EngineUnavailable."""
        async with self._lock:
            self._discard(cause)
            await self._ready("")

    async def lost(self) -> None:
        session = self._session
        if session is None:  # the next check starts one
            await asyncio.Event().wait()
        else:
            await session.process.ended()

    async def stop(self) -> None:
        """Kill the process and wait until it is gone."""
        self._discard("stop")
        while self._closing:
            await asyncio.gather(*self._closing, return_exceptions=True)

    async def check(self, task: CheckTask) -> CheckAnswer:
        """Run one check. Raises EngineUnavailable for faults that are ours.

        The time limit counts from when the candidate's imports are loaded. Cancelled, it kills the REPL at once.
        """
        async with self._lock:
            start = time.monotonic()
            try:
                task.code.encode()
                return await self._check(task, start)
            except UnicodeEncodeError as error:
                wrong = Message(severity=Severity.ERROR, data=f"the program is no Unicode text: {error.reason}")
                return _answer(start, CheckStatus.DONE, messages=(wrong,))
            except HeaderError as error:
                return _answer(start, CheckStatus.DONE, header_error=str(error))
            except Ending as ending:
                self._discard(str(ending.status.value))
                return _answer(start, ending.status, detail=ending.detail)

    async def _check(self, task: CheckTask, start: float) -> CheckAnswer:
        program = split_program(task.code)
        replayed = self._settings.tier == "replay" or not is_plain(program)
        session = await self._ready(program.imports)
        expected: Expectation | None = None
        if task.statement is not None and (self._replay.works or not replayed):
            expected = self._investigator.known(task, replayed)
            if expected is None:
                expecting = self._investigator.expected(session, task, replayed)
                expected = await self._ours(session, expecting, "elaborating the statement")
            if expected.error is not None:
                return _answer(start, CheckStatus.DONE, statement_error=expected.error)
        env = session.known(program.imports, task.heartbeats)
        if env is None:
            env = await self._ours(session, session.pristine(program.imports, task.heartbeats), "opening a header")
        session.checks += 1

        reply = await self._theirs(session, session.run(program.body, env, tactics=task.tactics), task.timeout_s)
        messages, truncated = answers.messages(reply)
        common: dict[str, Any] = {
            "messages": messages,
            "messages_truncated": truncated,
            "has_placeholder": answers.uses_placeholder(reply),
            "tactics": answers.tactic_states(reply) if task.tactics else (),
        }
        spent = answers.out_of_heartbeats(reply)
        if spent or any(message.severity == "error" for message in reply.messages):
            # Not valid whatever the facts are, but the answer must be the REPL's and not an imitation of it.
            await self._theirs(session, session.confirm(env), task.timeout_s)
            status = CheckStatus.HEARTBEATS if spent else CheckStatus.DONE
            return _answer(start, status, detail=spent.data[:500] if spent else None, **common)
        if replayed and not self._replay.works:
            return _answer(start, CheckStatus.DONE, **common)  # no facts, so no verdict: better than one that is forged
        limit = self._settings.start_timeout_s if replayed else task.timeout_s
        facts = self._facts(session, program, task, reply.env, expected, replayed)
        return _answer(start, CheckStatus.DONE, **common, **await self._theirs(session, facts, limit))

    async def _facts(
        self,
        session: Session,
        program: Program,
        task: CheckTask,
        env: int,
        expected: Expectation | None,
        replayed: bool,
    ) -> dict[str, Any]:
        """The target or the theorems, asked where the answers can be trusted."""
        trusted = env
        if replayed:
            try:
                trusted = await session.replayed(env)
            except ReplayRefused as refusal:
                return _refused(program, expected, str(refusal))
            except ReplExited as exited:
                if (why := kernel_refusal(exited)) is None:
                    raise
                return _refused(program, expected, why)
        kernel = True if replayed and self._replay.asks_kernel else None
        if expected is None:
            found = await self._investigator.theorems(session, trusted, program.body, program.imports)
            return {"theorems": tuple(facts.model_copy(update={"kernel_accepts": kernel}) for facts in found)}
        target = await self._investigator.target(session, trusted, task, program.imports, expected, env)
        return {"target": target.model_copy(update={"kernel_accepts": kernel})}

    async def _ready(self, imports: str) -> Session:
        """The process for the next check: the present one, or a fresh one when that is dead, old or full."""
        if self._session is not None and (cause := self._worn_out(self._session, imports)):
            self._discard(cause)
        if self._session is None:
            try:
                process = await ReplProcess.start(self._launched().confined(), _MOST_OUTPUT)
            except OSError as error:
                raise EngineUnavailable(f"the REPL cannot be started: {error}") from None
            self._session = Session(process, self._printing)
        return self._session

    def _worn_out(self, session: Session, imports: str) -> str | None:
        if not session.process.alive:
            return "exited"
        if session.checks >= self._settings.max_checks:
            return "checks"
        if not session.has(imports) and session.opened >= self._settings.headers:
            return "headers"
        return self._outgrown(session) if session.due(_WATCH_S) else None

    def _outgrown(self, session: Session) -> str | None:
        if session.process.cpu_s > _OLD * WHOLE_LIFE_CPU_S:
            return "processor_time"
        if session.checks and session.process.rss_bytes > _GROWN * self._settings.memory_mb * _MIB:
            return "growth"
        return None

    def _discard(self, cause: str) -> None:
        """Kill the present process now; it is waited for in the background."""
        session, self._session = self._session, None
        if session is None:
            return
        if cause != "stop":
            self._restarts += 1
            metrics.ENGINE_RESTARTS.labels(cause).inc()
        session.process.kill()
        closing = asyncio.get_running_loop().create_task(session.process.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        self._log.info("repl_discarded", cause=cause, checks=session.checks)

    async def _self_test(self, launcher: Launcher) -> Replay:
        try:
            replay = await asyncio.wait_for(try_replay(launcher, _MOST_OUTPUT), self._settings.start_timeout_s)
        except asyncio.TimeoutError:  # first, for in Python 3.11 it is an OSError
            raise EngineUnavailable(f"the REPL did not answer within {self._settings.start_timeout_s:.0f} s") from None
        except (OSError, ReplExited, ReplConfused, ProbeFault, HeaderError) as error:
            raise EngineUnavailable(f"the REPL does not work: {error}") from None
        if self._settings.tier == "replay" and not replay.works:
            raise EngineUnavailable(
                "this REPL loses the constants of a pickled environment, so it has no tier `replay`: use one of Lean "
                "4.30 or later, or LEAN_REWARD_REPL_TIER=fast"
            )
        return replay

    async def _ours(self, session: Session, work: Coroutine[Any, Any, T], what: str) -> T:
        """Work of our own, without the candidate: its faults are ours. HeaderError passes."""
        try:
            return await self._theirs(session, work, self._settings.start_timeout_s)
        except Ending as ending:
            self._discard(str(ending.status.value))
            raise EngineUnavailable(f"{what} failed ({ending.status.value}): {ending.detail}") from None

    async def _theirs(self, session: Session, work: Coroutine[Any, Any, T], limit_s: float) -> T:
        """Work that a candidate can make fail, within time and memory. Raises `Ending`; cancelled, kills the REPL."""
        doing = asyncio.ensure_future(work)
        deadline = time.monotonic() + limit_s
        used_up: float | None = None
        try:
            while not doing.done():
                if (left := deadline - time.monotonic()) <= 0:
                    raise Ending(CheckStatus.TIMEOUT, f"not finished after {limit_s:g} s")
                await asyncio.wait({doing}, timeout=min(_WATCH_S, left))
                if doing.done():  # most work ends before anything needs a look
                    break
                if used_up is None:
                    used_up = session.process.cpu_s + limit_s * self._settings.cpus
                self._watch(session.process, used_up)
            return doing.result()
        except (ReplExited, ReplConfused, ProbeFault) as fault:
            raise ended(fault) from None
        finally:
            if not doing.done():
                self._discard("interrupted")
                doing.cancel()

    def _watch(self, process: ReplProcess, most_cpu_s: float) -> None:
        if process.cpu_s > most_cpu_s:
            raise Ending(CheckStatus.TIMEOUT, f"it used more than {self._settings.cpus:g} processors")
        if process.rss_bytes > self._settings.memory_mb * _MIB:
            raise Ending(CheckStatus.OUT_OF_MEMORY, f"the REPL grew beyond {self._settings.memory_mb} MiB")
        if process.scratch_bytes > self._settings.scratch_mb * _MIB:
            raise Ending(CheckStatus.OUT_OF_MEMORY, f"the private folder grew beyond {self._settings.scratch_mb} MiB")

    def _launched(self) -> Launcher:
        if self._launcher is None:
            raise EngineUnavailable("the repl engine has not been started")
        return self._launcher


def _answer(start: float, status: CheckStatus, **parts: Any) -> CheckAnswer:
    return CheckAnswer(status=status, elapsed_s=time.monotonic() - start, **parts)


def _refused(program: Program, expected: Expectation | None, why: str) -> dict[str, Any]:
    """The kernel does not accept the program's constants. Nothing else was found out, and nothing else matters."""

    def facts(name: str) -> TargetFacts:
        return TargetFacts(
            name=name,
            found=True,
            kind="theorem",
            statement_match=True if expected else None,
            kernel_accepts=False,
            kernel_detail=why[:1000],
        )

    if expected is not None and expected.target is not None:
        return {"target": facts(expected.target.name)}
    return {"theorems": tuple(facts(name) for name in declared_theorems(program.body)[:1])}
