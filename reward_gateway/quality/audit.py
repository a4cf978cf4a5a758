"""The audit lane: a uniform part of each batch, checked to the end, only to know how good the predictions are.

Checks that Lean finished before a cutoff are no fair sample, since fast checks finish first. So the sample is drawn
before anything is scheduled, by a hash, such that the same batch sent again draws the same. What of it is unfinished at
the cutoff, or timed out, is checked afterwards, at the lowest priority and with a long limit. None of that reaches a
reward.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from reward_gateway.batches.desk import LeanDesk
from reward_gateway.batches.lean_jobs import submission
from reward_gateway.batches.prepare import Prepared
from reward_gateway.batches.records import Records
from reward_gateway.scheduling.policies import LABEL_PRIORITY
from services.contracts.lean import LeanOutcome
from services.queue.errors import QueueError, QueueUnavailable
from services.queue.jobs import Submission
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.within import within

_BATCHES = 64
_ENGINES_PART = 4
_PATIENCE_S = 1800.0
_RETRY_S = 5.0
_SCALE = 2**64


def draw(batch: str, share: float) -> Callable[[str], bool]:
    """Whether a check, by its key, belongs to the sample of a batch: with probability `share`, always alike."""
    seed = hashlib.blake2b(batch.encode(), digest_size=16).digest()

    def drawn(key: str) -> bool:
        digest = hashlib.blake2b(key.encode(), digest_size=8, key=seed).digest()
        return int.from_bytes(digest, "big") < share * _SCALE

    return drawn


@dataclass(eq=False)
class Audit:
    """The unfinished checks of one batch's sample; told Lean's answers by its desk. `done` hears each once."""

    checks: dict[str, Prepared]
    timeout_s: float
    done: Callable[[str, LeanOutcome], None]
    received_at: float = field(default_factory=time.monotonic)
    subscriber: str = field(default_factory=lambda: secrets.token_hex(12))
    asked: set[str] = field(default_factory=set)
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    flow = None  # audits take turns among themselves, below every caller
    share = 0.5

    @property
    def ttl_s(self) -> float:
        return self.timeout_s + _PATIENCE_S

    def receive(self, key: str, outcome: LeanOutcome, at_s: float) -> bool:
        if key not in self.asked:
            return False
        self.asked.remove(key)
        self.done(key, outcome)
        self.answered.set()
        return True

    def checked(self, key: str, outcome: LeanOutcome) -> None:
        """Times of checks with a limit of their own are no example for others."""

    def submissions(self, keys: Sequence[str]) -> list[Submission]:
        return [
            submission(self.checks[key], priority=LABEL_PRIORITY, timeout_s=self.timeout_s, label_only=True)
            for key in keys
        ]

    def unanswered(self) -> list[Submission]:
        return self.submissions(list(self.asked))


class AuditLane:
    """Runs audits one after the other; `run` is a task for the life of the process.

    At most a quarter of the warm engines works for it at a time, because a claimed check is not interrupted by a better
    one. When too many batches wait for their audit, the oldest is given up.
    """

    def __init__(self, desk: LeanDesk, homes: Records) -> None:
        self._desk = desk
        self._homes = homes
        self._waiting: deque[Audit] = deque()
        self._more = asyncio.Event()
        self.current: Audit | None = None

    def add(self, audit: Audit) -> None:
        self._waiting.append(audit)
        if len(self._waiting) > _BATCHES:
            metrics.AUDITS_GIVEN_UP.inc(len(self._waiting.popleft().checks))
        self._more.set()

    async def run(self) -> None:
        while True:
            while not self._waiting:
                self._more.clear()
                await self._more.wait()
            audit = self.current = self._waiting.popleft()
            self._desk.open(audit.subscriber, audit)
            try:
                with contextlib.suppress(QueueUnavailable):  # else nobody cancels its checks if this process dies
                    await self._homes.note(audit.subscriber, None)
                await self._check(audit)
            finally:
                self._desk.close(audit.subscriber)
                self.current = None
                await self._desk.withdraw(audit.subscriber)
                with contextlib.suppress(QueueUnavailable):
                    await self._homes.unnote(audit.subscriber)

    async def _check(self, audit: Audit) -> None:
        waiting = list(audit.checks)
        while waiting or audit.asked:
            room = max(1, self._desk.fleet.ready // _ENGINES_PART) - len(audit.asked)
            chosen, waiting = waiting[: max(room, 0)], waiting[max(room, 0) :]
            audit.asked.update(chosen)
            audit.answered.clear()
            try:
                if chosen:
                    await self._desk.submit(audit.subscriber, audit, audit.submissions(chosen))
                async with within(audit.ttl_s):
                    await audit.answered.wait()
            except asyncio.TimeoutError:
                metrics.AUDITS_GIVEN_UP.inc(len(waiting) + len(audit.asked))
                get_logger().warning("audit_given_up", checks=len(waiting) + len(audit.asked))
                return
            except QueueError as error:
                get_logger().warning("audit_waits", error=str(error))
                audit.asked.difference_update(chosen)
                waiting = [*chosen, *waiting]
                await asyncio.sleep(_RETRY_S)
