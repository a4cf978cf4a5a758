"""What a worker has to tell the queue: results and jobs that it gives back, kept until the queue has them.

While the queue is away everything stays here, in order; what the queue then no longer wants (the lease went to somebody
else meanwhile) is dropped by the queue itself, by its token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from redis.exceptions import ResponseError

from lean_worker.backoff import delays
from services.queue import Claim, Completion, JobQueue, QueueUnavailable
from services.runtime import metrics
from services.runtime.logging import get_logger

# The server is away, or refuses (out of memory, for one): either way the call is tried again later.
QUEUE_FAULTS = (QueueUnavailable, ResponseError)

_BATCH = 256


class Outbox:
    """Sends completions and releases in batches, whatever has gathered while the last call was under way."""

    def __init__(self, queue: JobQueue, told: Callable[[Claim], None]) -> None:
        """`told` is called for each claim once the queue has taken or refused what we said of it."""
        self._queue = queue
        self._told = told
        self._completions: list[Completion] = []
        self._releases: dict[bool, list[Claim]] = {False: [], True: []}  # by whether the attempt counts
        self._something = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._log = get_logger()

    def complete(self, completion: Completion) -> None:
        self._completions.append(completion)
        self._wake()

    def release(self, claims: Sequence[Claim], *, counted: bool = False) -> None:
        self._releases[counted].extend(claims)
        if claims:
            self._wake()

    async def flushed(self) -> None:
        """Wait until everything has been told."""
        await self._empty.wait()

    async def run(self) -> None:
        """Send for ever."""
        waits = delays(0.1, 5.0)
        while True:
            await self._something.wait()
            self._something.clear()
            try:
                await self._send()
                waits = delays(0.1, 5.0)
            except QUEUE_FAULTS as error:
                metrics.QUEUE_ERRORS.labels("complete").inc()
                self._log.warning("queue_unavailable", call="complete", error=str(error), unsent=len(self._completions))
                self._something.set()
                await asyncio.sleep(next(waits))
            metrics.RESULTS_UNSENT.set(len(self._completions))
            if not self._completions and not any(self._releases.values()):
                self._empty.set()

    async def _send(self) -> None:
        while batch := self._completions[:_BATCH]:
            accepted = await self._queue.complete(batch)
            del self._completions[: len(batch)]
            for completion, taken in zip(batch, accepted, strict=True):
                self._told(completion.claim)
                if not taken:
                    metrics.RESULTS_STALE.inc()
                    self._log.info("result_stale", key=completion.claim.key)
        for counted, releases in self._releases.items():
            while claims := releases[:_BATCH]:
                await self._queue.release(claims, counted=counted)
                del releases[: len(claims)]
                for claim in claims:
                    self._told(claim)

    def _wake(self) -> None:
        self._empty.clear()
        self._something.set()
