"""A slot: one engine, its start, its warm-up, and the rules of a check that goes wrong.

A crash or an out-of-memory is tried once more on a clean engine. If it repeats, it is the candidate's fault, and
`judge` says so. An engine that fails by itself is ours: it is restarted, and no verdict comes of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lean_worker.backoff import delays
from lean_worker.engines.base import Engine, EngineUnavailable, HeaderError
from services.contracts.lean import CheckStatus, CheckTask, LeanOutcome
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.proofs.verdict import judge
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.within import within

_CRASHES = frozenset({CheckStatus.CRASHED, CheckStatus.OUT_OF_MEMORY})
_WARM_UP = CheckTask(code="theorem warm_up : 1 + 1 = 2 := rfl", statement="theorem warm_up : 1 + 1 = 2", timeout_s=60)
_HANGS_S = 30.0  # an engine keeps the time limit itself; beyond it by so much, it hangs
_FIRST_DELAY_S = 0.5
_MOST_DELAY_S = 30.0


class Slot:
    """One engine of a worker. `ready` is true while it can check; `bring_up` makes it so."""

    def __init__(self, index: int, engine: Engine, headers: Sequence[str]) -> None:
        self.index = index
        self.engine = engine
        self.ready = False
        self.warm_headers: tuple[str, ...] = ()
        self._headers = headers
        self.started = False
        self._dirty: str | None = None
        self._log = get_logger().bind(slot=index)

    @property
    def restarts(self) -> int:
        return self.engine.restarts

    async def bring_up(self) -> None:
        """Start (or restart) the engine and warm it, again and again until it serves."""
        for delay in delays(_FIRST_DELAY_S, _MOST_DELAY_S):
            try:
                if self.started:
                    await self.engine.restart("unavailable")
                else:
                    await self.engine.start()
                    self.started = True
                await self._warm_up()
            except EngineUnavailable as error:
                metrics.ENGINE_WARM_UPS.labels("failed").inc()
                self._log.error("engine_unavailable", error=str(error), again_in_s=round(delay, 1))
                await asyncio.sleep(delay)
            else:
                metrics.ENGINE_WARM_UPS.labels("ok").inc()
                self.ready = True
                return

    async def check(self, task: CheckTask) -> LeanOutcome:
        """Run one check and judge it.

        Raises:
            EngineUnavailable: the engine is lost and cannot be restarted; the job belongs to another engine.
        """
        crashed_before = False
        fault = ""
        for attempt in (1, 2):
            try:
                async with within(task.timeout_s + _HANGS_S):
                    answer = await self.engine.check(task)
            except (EngineUnavailable, asyncio.TimeoutError) as error:
                fault = str(error) or f"no answer {_HANGS_S:g} s after the time limit"
                self._log.warning("engine_failed", error=fault, attempt=attempt)
                await self._clean("unavailable")
                metrics.CHECKS_RETRIED.labels("unavailable").inc()
                continue
            if answer.status not in _CRASHES:
                return judge(task, answer)
            if crashed_before:
                self._dirty = answer.status.value  # `settle` cleans it; the verdict need not wait for that
                return judge(task, answer, repeated=True)
            crashed_before = True
            fault = answer.detail or answer.status.value
            self._log.warning("check_crashed", status=answer.status.value, attempt=attempt)
            await self._clean(answer.status.value)
            metrics.CHECKS_RETRIED.labels(answer.status.value).inc()
        return infrastructure_fault(f"the engine failed on it twice: {fault}")

    async def settle(self) -> None:
        """Clean the engine after a check whose verdict is already on its way."""
        if self._dirty is not None:
            cause, self._dirty = self._dirty, None
            try:
                await self._clean(cause)
            except EngineUnavailable as error:
                self._log.error("engine_unavailable", error=str(error))

    async def stop(self) -> None:
        self.ready = False
        await self.engine.stop()

    async def _clean(self, cause: str) -> None:
        try:
            await self.engine.restart(cause)
        except EngineUnavailable:
            self.ready = False
            raise
        except asyncio.CancelledError:
            self._dirty = cause  # broken off half-way: `settle` does it again
            raise

    async def _warm_up(self) -> None:
        outcome = judge(_WARM_UP, await self.engine.check(_WARM_UP))
        if outcome.verdict is not Verdict.VALID:
            raise EngineUnavailable(f"the warm-up check came out {outcome.status}, {outcome.reason}: {outcome.detail}")
        warm: list[str] = []
        for header in reversed(self._headers):  # the first one last: an engine may hold only what it opened last
            try:
                await self.engine.open(header)
                warm.insert(0, header)
            except HeaderError as error:  # a wrong setting, not a broken engine
                self._log.error("header_not_warm", header=header, error=str(error))
        self.warm_headers = tuple(warm)


def infrastructure_fault(detail: str) -> LeanOutcome:
    """No verdict: the fault is ours."""
    return LeanOutcome(status=LeanStatus.CRASHED, reason=Reason.INFRASTRUCTURE, detail=detail)
