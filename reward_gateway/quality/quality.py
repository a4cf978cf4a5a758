"""What this gateway knows of the evaluator's quality, and what follows from it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from reward_gateway.batches.desk import LeanDesk
from reward_gateway.batches.prepare import Prepared
from reward_gateway.batches.records import Records
from reward_gateway.batches.state import BatchState, Predicted
from reward_gateway.quality.audit import Audit, AuditLane, draw
from reward_gateway.quality.guard import Guard
from reward_gateway.quality.pairs import ALL_PROBLEMS, Pair, PairWindow
from reward_gateway.quality.records import LabelledProgram, PairRecords
from services.contracts.evaluator import EvaluatorQuality, GuardMode
from services.contracts.lean import LeanOutcome
from services.contracts.outcomes import LeanStatus, Verdict
from services.queue.errors import QueueUnavailable
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.settings import GatewaySettings

_WATCH_S = 1.0
_UNNAMED = "unnamed"
_OTHER = "other"
_SOURCES = 32
_AUDIT_TOGETHER = 16


class Quality:
    """One for each gateway process; `watch` and `lane.run` run as tasks for its life.

    The window is read from what all gateways record, so that they agree and a new one does not start from nothing.
    """

    def __init__(self, settings: GatewaySettings, desk: LeanDesk, records: PairRecords, homes: Records) -> None:
        self._settings = settings
        self._records = records
        self._window = PairWindow(settings.quality_window_s)
        self._guard = Guard(settings.guard, settings.guard_limit)
        self._read_to = str(int((time.time() - settings.quality_window_s) * 1000))
        self._sources: set[str] = set()
        self._reading = asyncio.Lock()
        self._distrusted: frozenset[str] = frozenset()
        self.lane = AuditLane(desk, homes)

    # Before the cutoff

    def audits(self, batch: str) -> Callable[[str], bool]:
        """Which checks, by key, belong to a batch's audit sample."""
        return draw(batch, self._settings.audit_share)

    def distrusted(self) -> frozenset[str]:
        """Models whose unfinished positives give no reward now."""
        return self._distrusted if self._guard.mode is GuardMode.ACT else frozenset()

    # After it

    async def learn_from(self, state: BatchState) -> None:
        """Record where both answered, and leave the rest of the audit sample to the lane."""
        pairs: list[tuple[Pair, LabelledProgram]] = []
        unfinished: dict[str, Prepared] = {}
        for check in state.checks():
            predicted = state.predictions.get(check.task.code)
            if predicted is None or predicted.prediction.verdict is Verdict.UNKNOWN or check.key in state.misstated:
                continue  # a positive that gives no reward is none of the evaluator's errors
            answer = state.answers.get(check.key)
            if answer is not None and answer.decides:
                pairs.append(self._pair(state, check, predicted, answer.outcome))
            elif check.key in state.audited and (answer is None or answer.leaves_to_cascade):
                unfinished[check.key] = check
        await self._record(pairs)
        if unfinished:
            metrics.AUDITED.inc(len(unfinished))
            self._audit(state, unfinished)

    def _audit(self, state: BatchState, unfinished: dict[str, Prepared]) -> None:
        found: list[tuple[Pair, LabelledProgram]] = []
        left = len(unfinished)
        tasks: set[asyncio.Task[None]] = set()

        def done(key: str, outcome: LeanOutcome) -> None:
            nonlocal left, found
            left -= 1
            check = unfinished[key]
            if outcome.status is LeanStatus.OK and outcome.verdict is not Verdict.UNKNOWN:
                found.append(self._pair(state, check, state.predictions[check.task.code], outcome))
            if found and (left == 0 or len(found) == _AUDIT_TOGETHER):
                task = asyncio.create_task(self._record(found))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                found = []

        self.lane.add(Audit(unfinished, self._settings.audit_timeout_s, done))

    def _pair(
        self, state: BatchState, check: Prepared, predicted: Predicted, outcome: LeanOutcome
    ) -> tuple[Pair, LabelledProgram]:
        prediction, task, now = predicted.prediction, check.task, time.time()
        problems, audited = self._source(state.plan.problems or _UNNAMED), check.key in state.audited
        valid, predicted_valid = outcome.verdict is Verdict.VALID, prediction.verdict is Verdict.VALID
        label = LabelledProgram(
            code=task.code,
            header=task.header,
            statement=task.statement,
            verdict=outcome.verdict,
            reason=outcome.reason,
            toolchain=None if outcome.identity is None else outcome.identity.toolchain,
            elapsed_s=outcome.elapsed_s,
            predicted=prediction.verdict,
            gate=prediction.gate,
            model=predicted.model,
            problems=problems,
            audited=audited,
            at=now,
        )
        return Pair(now, predicted.model, problems, audited, predicted_valid, valid), label

    def _source(self, problems: str) -> str:
        """Sources are named by callers: only the first of them are told apart."""
        if problems not in self._sources and len(self._sources) >= _SOURCES:
            return _OTHER
        self._sources.add(problems)
        return problems

    async def _record(self, pairs: list[tuple[Pair, LabelledProgram]]) -> None:
        if not pairs:
            return
        for pair, _ in pairs:
            metrics.EVALUATOR_PAIRS.labels(
                pair.model,
                pair.problems,
                "audit" if pair.audited else "finished",
                "valid" if pair.predicted_valid else "invalid",
                "valid" if pair.valid else "invalid",
            ).inc()
        try:
            await self._records.add([pair for pair, _ in pairs], [label for _, label in pairs])
            await self.read()
        except QueueUnavailable as error:
            get_logger().warning("pairs_not_recorded", pairs=len(pairs), error=str(error))

    # The window

    async def read(self) -> None:
        """Take in what was recorded since. Raises `QueueUnavailable`."""
        async with self._reading:
            self._read_to, pairs = await self._records.pairs_after(self._read_to)
            for pair in pairs:
                self._window.add(pair)
        self._look()

    async def watch(self) -> None:
        while True:
            try:
                await self.read()
            except QueueUnavailable as error:
                get_logger().debug("pairs_not_read", error=str(error))
            await asyncio.sleep(_WATCH_S)

    def _look(self) -> None:
        """Form the guard's opinion, from the audit sample alone."""
        now = time.time()
        audited = [
            window for window in self._window.windows(now) if window.problems == ALL_PROBLEMS and window.audited_only
        ]
        distrusted = frozenset(window.model for window in audited if self._guard.distrusts(window.confusion))
        for window in audited:
            rate = window.false_positive_rate
            metrics.EVALUATOR_DISTRUSTED.labels(window.model).set(window.model in distrusted)
            if rate is not None:
                for bound, value in (("rate", rate.rate), ("low", rate.low), ("high", rate.high)):
                    metrics.EVALUATOR_FALSE_POSITIVES.labels(window.model, bound).set(value)
        for model in distrusted - self._distrusted:
            get_logger().warning("evaluator_distrusted", model=model, guard=self._guard.mode.value)
        for model in self._distrusted - distrusted:
            metrics.EVALUATOR_DISTRUSTED.labels(model).set(0)
            get_logger().info("evaluator_trusted_again", model=model)
        self._distrusted = distrusted

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(
            f"{model}: the audit shows a false-positive rate above {self._settings.guard_limit:g}"
            for model in sorted(self._distrusted)
        )

    def report(self) -> EvaluatorQuality:
        return EvaluatorQuality(
            windows=self._window.windows(time.time()), guard=self._guard.mode, distrusted=bool(self._distrusted)
        )
