"""Signs of life between gateways: each shows that it lives, and looks after what a dead one left behind."""

from __future__ import annotations

import asyncio
import time

from reward_gateway.batches.batch import Batch
from reward_gateway.batches.book import Batches
from reward_gateway.batches.desk import LeanDesk
from reward_gateway.batches.records import Records
from services.contracts.jobs import JobState
from services.queue.errors import QueueUnavailable
from services.runtime.logging import get_logger

_BEAT_S = 1.0
_LOOK_AFTER_S = 3.0


class Keeper:
    """One for each gateway process; `keep` runs as a task for its life."""

    def __init__(self, batches: Batches, desk: LeanDesk, records: Records) -> None:
        self._batches = batches
        self._desk = desk
        self._records = records

    async def keep(self) -> None:
        """Ends only by cancellation."""
        looked_after = 0.0
        while True:
            try:
                await self.beat()
                if time.monotonic() - looked_after >= _LOOK_AFTER_S and not self._batches.draining:
                    looked_after = time.monotonic()
                    await self._look_after_the_dead()
            except QueueUnavailable as error:
                get_logger().warning("beat_failed", error=str(error))
            await asyncio.sleep(_BEAT_S)

    async def beat(self) -> None:
        """Show that this process lives and how far its batches are; stop those that were cancelled elsewhere."""
        named = {key: batch for key, batch in self._batches.named.items() if not batch.answer.done()}
        lived, ended, gone = await self._records.beat({key: batch.progress() for key, batch in named.items()})
        for key in ended:
            named[key].cancel()
        for key in gone:
            await self._record_again(key, named[key])
        if not lived and self._batches.running:  # others may have taken this process for dead, and cancelled its jobs
            for batch in self._batches.running:
                await self._records.note(batch.subscriber, batch.key)
            await self._desk.resync()

    async def _record_again(self, key: str, batch: Batch) -> None:
        """The server lost its memory, or others took us for dead and forgot the batch: it goes on, and can be found.

        What a job was asked is not known any more, so that nobody could take it over.
        """
        if batch.lost or batch.answer.done():
            return
        get_logger().warning("batch_recorded_again", batch=batch.id)
        await self._records.open(
            key,
            digest=batch.digest,
            subscriber=batch.subscriber,
            request=None,
            candidates=len(batch.candidates),
            lifetime_s=batch.plan.deadline_s,
        )
        if batch.lost or batch.answer.done():  # it ended meanwhile, and did away with a record that was not there yet
            await self._records.forget(key)

    async def _look_after_the_dead(self) -> None:
        """Take over a dead gateway's jobs; cancel what only its own callers waited for."""
        for home, batches in (await self._records.dead_homes()).items():
            for subscriber, key in batches.items():
                record = None if key is None else await self._records.read(key)
                if record is not None and record.durable and record.state is JobState.RUNNING:
                    await self._batches.take_over(record)
                    continue
                await self._desk.withdraw(subscriber)
                if record is not None and record.home == home and await self._records.take_over(record):
                    await self._records.forget(record.key)
            await self._records.bury(home)
