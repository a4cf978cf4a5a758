"""A scripted engine, named so: it does what the words of a candidate say, for faults that real Lean shows rarely.

The code is a list of words, one for each run of that candidate; the last one repeats, and `#...` words only make the
code unique: `ok`, `wrong`, `crash`, `oom`, `timeout`, `lost` (the engine is unavailable), `bug` (a fault in our code),
`breaks` (the check is cancelled by nobody), `slow:SECONDS`.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from lean_worker.engines.base import EngineUnavailable, HeaderError
from services.contracts.lean import CheckAnswer, CheckStatus, CheckTask, EngineIdentity, Message, Severity, TargetFacts

_FACTS = TargetFacts(
    name="t",
    found=True,
    kind="theorem",
    statement_match=True,
    binders_match=True,
    printed_match=True,
    kernel_accepts=True,
)
_OK = CheckAnswer(status=CheckStatus.DONE, elapsed_s=0.001, theorems=(_FACTS,), target=_FACTS)
_ANSWERS = {
    "ok": _OK,
    "wrong": CheckAnswer(
        status=CheckStatus.DONE, elapsed_s=0.001, messages=(Message(severity=Severity.ERROR, data="unsolved goals"),)
    ),
    "crash": CheckAnswer(status=CheckStatus.CRASHED, elapsed_s=0.001, detail="trap"),
    "oom": CheckAnswer(status=CheckStatus.OUT_OF_MEMORY, elapsed_s=0.001, detail="memory cap"),
    "timeout": CheckAnswer(status=CheckStatus.TIMEOUT, elapsed_s=0.001),
}


class ScriptedEngine:
    """Counts what happens to it. `broken` makes every start and restart fail; `dies` is set to lose it while idle."""

    identity = EngineIdentity(engine="scripted", toolchain="none", environment="none")
    rss_bytes = 1000

    def __init__(self) -> None:
        self.broken = False
        self.starts = 0
        self.restarted: list[str] = []
        self.dies = asyncio.Event()
        self.opened: list[str] = []
        self.checked: list[str] = []
        self.cancelled: list[str] = []
        self.stopped = False
        self.busy = False
        self._runs: Counter[str] = Counter()

    async def start(self) -> None:
        if self.broken:
            raise EngineUnavailable("it does not start")
        self.starts += 1

    async def open(self, header: str) -> None:
        if "Mathlib" in header:
            raise HeaderError("unknown import Mathlib")
        self.opened.append(header)

    async def check(self, task: CheckTask) -> CheckAnswer:
        assert not self.busy, "two checks at once on one engine"
        if "warm_up" in task.code:
            return _OK
        self.busy = True
        try:
            return await self._act(task)
        except asyncio.CancelledError:
            self.cancelled.append(task.code)
            raise
        finally:
            self.busy = False

    async def _act(self, task: CheckTask) -> CheckAnswer:
        words = [word for word in task.code.split() if not word.startswith("#")]
        word = words[min(self._runs[task.code], len(words) - 1)]
        self._runs[task.code] += 1
        self.checked.append(task.code)
        if word == "lost":
            raise EngineUnavailable("the process is gone")
        if word == "breaks":
            raise asyncio.CancelledError
        if word == "bug":
            raise ZeroDivisionError("a fault of ours")
        if word.startswith("slow:"):
            await asyncio.sleep(float(word.removeprefix("slow:")))
            return _OK
        return _ANSWERS[word]

    async def restart(self, cause: str) -> None:
        self.restarted.append(cause)
        self.dies.clear()
        if self.broken:
            raise EngineUnavailable("it does not start again")

    @property
    def restarts(self) -> int:
        return len(self.restarted)

    async def lost(self) -> None:
        await self.dies.wait()

    async def stop(self) -> None:
        self.stopped = True
