"""Programs in, Lean's verdicts and reference traces out, through the queue and whatever workers it has.

learning-lean-feedback, Section 3.3 and Appendix C: timeouts, infrastructure faults and what the precheck rejects are
not labelled. An infrastructure fault is not written down either, so that the next run tries that program again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gpu_evaluator.feedback.trace import build_trace, prepare_source
from gpu_evaluator.training.records import LabelFile, LabelRecord, ProgramRecord
from services.contracts.lean import CheckTask, LeanJob, LeanOutcome
from services.contracts.outcomes import Profile, Reason, Verdict
from services.proofs.precheck import precheck
from services.proofs.statement import StatementInvalid, read_statement
from services.queue import Delivery, JobQueue, QueueFull, QueueUnavailable, Submission

_WINDOW = 256  # programs with the workers at once
_LOOK_AGAIN_S = 10.0


@dataclass(frozen=True, slots=True)
class LabelRules:
    """How programs are checked. `timeout_s`: 180 in the paper."""

    header: str
    profile: Profile
    heartbeats: int
    timeout_s: float = 180.0
    priority: int = -100


@dataclass
class Tally:
    """What became of the programs."""

    valid: int = 0
    invalid: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    faults: int = 0

    @property
    def done(self) -> int:
        return self.valid + self.invalid + self.excluded.total() + self.faults


@dataclass(frozen=True, slots=True)
class _Wanted:
    record: ProgramRecord
    task: CheckTask
    payload: bytes


class Labeller:
    """One run. `progress` is called after each program."""

    def __init__(self, queue: JobQueue, file: LabelFile, rules: LabelRules, progress: Callable[[Tally], None]) -> None:
        self._queue, self._file, self._rules, self._progress = queue, file, rules, progress
        self._name = f"label-{secrets.token_hex(8)}"
        self._waiting: dict[str, _Wanted] = {}
        self._room = asyncio.Semaphore(_WINDOW)
        self.tally = Tally()

    async def run(self, records: Iterable[ProgramRecord]) -> Tally:
        """Label what the file does not have yet. Stops cleanly when it is cancelled."""
        tasks = [asyncio.create_task(work) for work in (self._send(records), self._listen(), self._look_again())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:  # the first ends when all is answered, the others never do but by an error
                if task.done():
                    task.result()
            return self.tally
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with contextlib.suppress(QueueUnavailable):
                await self._queue.unsubscribe(self._name)

    async def _send(self, records: Iterable[ProgramRecord]) -> None:
        for record in records:
            if record.key in self._file.done:
                continue
            wanted = self._prepare(record)
            if wanted is None:
                continue
            await self._room.acquire()
            key = hashlib.sha256(b"label" + wanted.payload).hexdigest()
            if key in self._waiting:  # the same program under another id
                self._room.release()
                self._exclude(record, "duplicate")
                continue
            job = LeanJob(key=key, task=wanted.task, label_only=True)
            self._waiting[key] = _Wanted(record, wanted.task, job.model_dump_json().encode())
            await self._submit([key])
        for _ in range(_WINDOW):  # until every room is empty
            await self._room.acquire()

    def _prepare(self, record: ProgramRecord) -> _Wanted | None:
        rules = self._rules
        source = prepare_source(record.code)
        header = rules.header if record.header is None else record.header
        rejection = precheck(source, header, rules.profile, rules.heartbeats)
        if rejection is not None:
            self._exclude(record, rejection.reason.value)
            return None
        try:
            statement = None if record.statement is None else read_statement(record.statement).text
        except StatementInvalid:
            self._exclude(record, Reason.STATEMENT_INVALID.value)
            return None
        task = CheckTask(
            code=source,
            header=header,
            statement=statement,
            profile=rules.profile,
            timeout_s=rules.timeout_s,
            heartbeats=rules.heartbeats,
            messages=True,
            tactics=True,
        )
        return _Wanted(record, task, task.model_dump_json().encode())

    async def _submit(self, keys: Iterable[str]) -> None:
        """Queue them; those that were answered before are received now."""
        submissions = [
            Submission(key, self._waiting[key].payload, self._rules.priority, self._rules.timeout_s) for key in keys
        ]
        with contextlib.suppress(QueueUnavailable, QueueFull):  # `_look_again` submits what is not there
            report = await self._queue.submit(self._name, submissions, home=self._name)
            if self._waiting.keys() & set(report.finished):
                for delivery in (await self._queue.delivered(self._name)).values():
                    self._receive(delivery)

    async def _listen(self) -> None:
        async for deliveries in self._queue.deliveries(self._name):
            for delivery in deliveries:
                self._receive(delivery)

    async def _look_again(self) -> None:
        """Submit again what waits: what a server that restarted still has is joined, what it lost runs again."""
        while True:
            await asyncio.sleep(_LOOK_AGAIN_S)
            await self._submit(list(self._waiting))

    def _receive(self, delivery: Delivery) -> None:
        wanted = self._waiting.pop(delivery.key, None)
        if wanted is None:
            return
        self._room.release()
        outcome = None if delivery.result is None else LeanOutcome.model_validate_json(delivery.result)
        if outcome is None or outcome.reason is Reason.INFRASTRUCTURE:
            self.tally.faults += 1
            self._progress(self.tally)
        elif outcome.verdict is Verdict.UNKNOWN:
            self._exclude(wanted.record, outcome.reason.value)
        else:
            self._label(wanted, outcome)

    def _label(self, wanted: _Wanted, outcome: LeanOutcome) -> None:
        record = wanted.record
        self._file.add(
            LabelRecord(
                id=record.key,
                group=record.group or record.statement or record.key,
                code=wanted.task.code,
                program=None if record.code == wanted.task.code else record.code,
                verdict=outcome.verdict,
                reason=outcome.reason,
                trace=build_trace(wanted.task.code, outcome.tactics, outcome.messages),
                toolchain=outcome.identity.toolchain if outcome.identity else "unknown",
                elapsed_s=outcome.elapsed_s,
                benchmark=record.benchmark,
                prover=record.prover,
            )
        )
        if outcome.verdict is Verdict.VALID:
            self.tally.valid += 1
        else:
            self.tally.invalid += 1
        self._progress(self.tally)

    def _exclude(self, record: ProgramRecord, reason: str) -> None:
        self._file.exclude(record.key, reason)
        self.tally.excluded[reason] += 1
        self._progress(self.tally)
