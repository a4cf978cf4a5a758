"""Joins calls that carry one sample each into batches.

Trainers call once a sample, many at once, without ids, and call again when they are impatient. So: samples that arrive
within a small window are one batch; a sample whose label names its group and the group's size waits a while for the
rest of it; equal samples in flight are one candidate, answered to all who asked. A batch keeps the limit of the
earliest call that is in it, and a call is never held longer than the limit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from reward_gateway.batches.batch import Batch
from reward_gateway.batches.book import Batches, shutting_down
from reward_gateway.bodies.score import ScoreBody
from reward_gateway.compat.patience import answered
from reward_gateway.compat.samples import Sample
from services.contracts.problems import ProblemCode
from services.contracts.proofs import CandidateResult, Cutoff, ScoreOptions, ScoreResponse
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.problems import ProblemError
from services.runtime.settings import CompatSettings

_GRACE_S = 2.0  # for writing and reading the answer, behind the batch's own deadline


@dataclass(eq=False, slots=True)
class _Entry:
    """A distinct sample in flight. `received_at`: of its first call, on the monotonic clock. `calls`: who waits."""

    sample: Sample
    received_at: float
    answer: asyncio.Future[CandidateResult]
    calls: int = 0
    work: _Work | None = None


@dataclass(eq=False, slots=True)
class _Work:
    """A joined batch on its way."""

    entries: Sequence[_Entry]
    task: asyncio.Task[None] | None = None

    def cancel_if_unwanted(self) -> None:
        if self.task is not None and not any(entry.calls for entry in self.entries):
            self.task.cancel()


@dataclass(slots=True)
class _Group:
    """What has arrived of a group that says how many it will be. `arrived` counts calls, equal samples included."""

    size: int
    waiting: list[_Entry] = field(default_factory=list)
    arrived: int = 0
    timer: asyncio.TimerHandle | None = None


class Joiner:
    """One for each gateway process."""

    def __init__(self, settings: CompatSettings, batches: Batches) -> None:
        self._settings = settings
        self._batches = batches
        self._entries: dict[Sample, _Entry] = {}
        self._groups: dict[tuple[str, str], _Group] = {}
        self._windows: dict[str, list[_Entry]] = {}
        self._works: set[_Work] = set()

    async def score(self, sample: Sample, received_at: float) -> CandidateResult:
        """The result of a sample, at the latest about `limit_s` after its first call.

        Cancelling the call takes its interest away; a batch that interests nobody is cancelled. Raises `ProblemError`.
        """
        if self._batches.draining:
            raise shutting_down()
        entry = self._entries.get(sample)
        if entry is None:
            entry = _Entry(sample, received_at, asyncio.get_running_loop().create_future())
            entry.answer.add_done_callback(_seen)
            self._entries[sample] = entry
            fresh = True
        else:
            metrics.COMPAT_JOINED.inc()
            fresh = False
        entry.calls += 1
        try:
            self._arrive(entry, fresh)
            left_s = entry.received_at + self._settings.limit_s + 2 * _GRACE_S - time.monotonic()
            return await asyncio.wait_for(asyncio.shield(entry.answer), max(left_s, 0.0))
        except asyncio.TimeoutError:
            raise ProblemError(ProblemCode.INTERNAL_ERROR, "the joined batch did not end at its deadline") from None
        finally:
            entry.calls -= 1
            if entry.work is not None:
                entry.work.cancel_if_unwanted()

    # Gathering

    def _arrive(self, entry: _Entry, fresh: bool) -> None:
        task = entry.sample.task
        if task.group is None or task.group_size is None or task.group_size <= 1:
            if fresh:
                self._join((entry,))
            return
        key = (entry.sample.owner, task.group)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(task.group_size)
            wait_s = min(self._settings.group_wait_s, self._settings.limit_s / 2)
            group.timer = self._later(wait_s, lambda: self._release(key, group))
        group.arrived += 1
        if fresh:
            group.waiting.append(entry)
        if group.arrived >= group.size:
            self._forget(key, group)
            self._join(group.waiting)
        elif group.timer is None and fresh:  # it has waited before, for nothing
            group.waiting.clear()
            self._join((entry,))

    def _release(self, key: tuple[str, str], group: _Group) -> None:
        """A group has waited long enough. What still comes of it waits no more, until it is complete or forgotten."""
        waiting, group.waiting, group.timer = group.waiting, [], None
        self._join(waiting)
        self._later(self._settings.limit_s, lambda: self._forget(key, group))

    def _forget(self, key: tuple[str, str], group: _Group) -> None:
        if group.timer is not None:
            group.timer.cancel()
        if self._groups.get(key) is group:
            del self._groups[key]

    def _join(self, entries: Sequence[_Entry]) -> None:
        """Put samples into the window of their owner; the first one opens it."""
        if not entries:
            return
        owner = entries[0].sample.owner
        window = self._windows.get(owner)
        if window is None:
            window = self._windows[owner] = []
            self._later(self._settings.window_s, lambda: self._close(owner))
        window.extend(entries)

    def _close(self, owner: str) -> None:
        entries = []
        for entry in self._windows.pop(owner):
            if entry.calls:
                entries.append(entry)
            else:  # everybody hung up before it was asked for
                self._entries.pop(entry.sample, None)
                entry.answer.cancel()
        for start in range(0, len(entries), self._settings.max_batch):
            work = _Work(entries[start : start + self._settings.max_batch])
            for entry in work.entries:
                entry.work = work
            work.task = asyncio.create_task(self._run(work))
            self._works.add(work)
            work.cancel_if_unwanted()

    @staticmethod
    def _later(seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, call)

    # Scoring

    async def _run(self, work: _Work) -> None:
        try:
            for entry, result in zip(work.entries, await self._score(work.entries), strict=True):
                entry.answer.set_result(result)
        except ProblemError as error:
            _fail(work.entries, error)
        except asyncio.CancelledError:
            _fail(work.entries, shutting_down())  # nobody waits for it, or the process ends
        except Exception:
            get_logger().exception("joined_batch_failed", samples=len(work.entries))
            _fail(work.entries, ProblemError(ProblemCode.INTERNAL_ERROR, "the log has more about the joined batch"))
        finally:
            for entry in work.entries:
                if self._entries.get(entry.sample) is entry:
                    del self._entries[entry.sample]
            self._works.discard(work)

    async def _score(self, entries: Sequence[_Entry]) -> Sequence[CandidateResult]:
        """Raises `ProblemError`."""
        settings = self._settings
        received_at = min(entry.received_at for entry in entries)
        limit = received_at + settings.limit_s
        metrics.COMPAT_BATCH_SIZE.observe(len(entries))
        body = ScoreBody(
            ScoreOptions(cutoff=Cutoff(deadline_s=settings.limit_s), prepend_header=settings.prepend_header),
            [entry.sample.candidate(index) for index, entry in enumerate(entries)],
        )

        def start() -> Batch:
            return self._batches.start_unnamed(entries[0].sample.owner, body, received_at=received_at)

        batch = await answered(start, self._batches.leave, until=limit + _GRACE_S, admission_until=limit)
        return ScoreResponse.model_validate_json(batch.answer.result().body).results


def _fail(entries: Sequence[_Entry], error: ProblemError) -> None:
    for entry in entries:
        if not entry.answer.done():
            entry.answer.set_exception(error)


def _seen(answer: asyncio.Future[CandidateResult]) -> None:
    """Everybody may have hung up before the answer: its exception then is nobody's."""
    if not answer.cancelled():
        answer.exception()
