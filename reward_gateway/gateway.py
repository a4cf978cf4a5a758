"""The parts of a gateway process, put together and started."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Sequence

from reward_gateway.batches.book import Batches
from reward_gateway.batches.desk import LeanDesk
from reward_gateway.batches.judges import Judges
from reward_gateway.batches.keeper import Keeper
from reward_gateway.batches.records import Records
from reward_gateway.bodies.stream import BodyBudget
from reward_gateway.evaluator.desk import EvaluatorDesk
from reward_gateway.evaluator.toolchain import other_lean
from reward_gateway.limits.keys import EVERY_KEY
from reward_gateway.limits.quotas import Quotas
from reward_gateway.quality.quality import Quality
from reward_gateway.quality.records import PairRecords
from reward_gateway.studies.recorder import make_recorder
from reward_gateway.trajectories.score import Trajectories
from services.contracts.health import Readiness
from services.contracts.problems import Missing
from services.queue.cache import VerdictCache
from services.queue.connection import connect
from services.queue.errors import QueueUnavailable
from services.queue.queue import JobQueue
from services.runtime import metrics
from services.runtime.auth import ApiKeys
from services.runtime.logging import get_logger
from services.runtime.settings import GatewaySettings, Settings, SettingsError

_LOOP_PAUSE_S = 1.0


class Gateway:
    """One gateway process. `start` and `stop` once each, within one event loop."""

    def __init__(self, settings: Settings) -> None:
        """Raises `SettingsError`: there is no queue URL, or the API keys cannot be read."""
        if settings.queue.url is None:
            raise SettingsError("the gateway needs a queue: set LEAN_REWARD_QUEUE_URL, or use `lean-reward up`")
        try:
            self.keys = ApiKeys.parse(settings.gateway.keys.get_secret_value())
        except ValueError as error:
            raise SettingsError(f"gateway.keys: {error}") from None
        self.settings = settings.gateway
        queue = settings.queue
        home = secrets.token_hex(8)
        self._redis = connect(queue.url.get_secret_value() if queue.url else "")
        job_queue = JobQueue(
            self._redis, prefix=queue.prefix, lease_s=queue.lease_s, keep_s=queue.keep_s, max_depth=queue.max_depth
        )
        cache = VerdictCache(self._redis, prefix=queue.prefix, ttl_s=queue.cache_s) if queue.cache_s else None
        self._records = records = Records(self._redis, prefix=queue.prefix, home=home, keep_s=queue.keep_s)
        self.budget = BodyBudget(self.settings.max_bodies_bytes)
        self.desk = LeanDesk(job_queue, cache, home)
        self.evaluator = _evaluator_desk(self.settings)
        pairs = PairRecords(
            self._redis,
            prefix=queue.prefix,
            window_s=self.settings.quality_window_s,
            labels_kept=self.settings.labels_kept,
        )
        self.quality = Quality(self.settings, self.desk, pairs, records)
        unknown = sorted(set(self.settings.key_limits) - self.keys.names - {EVERY_KEY})
        if unknown:
            raise SettingsError(f"gateway.key_limits: no API key has the name {unknown[0]!r}")
        self.quotas = Quotas(
            self._redis, prefix=queue.prefix, limits=self.settings.key_limits, several=len(self.keys.names) > 1
        )
        judges = Judges(self.desk, self.evaluator, self.quality)
        self._recorder = make_recorder(settings.recorder, home)
        self.batches = Batches(self.settings, judges, records, self.quotas, self._recorder)
        self.trajectories = Trajectories(settings, self._redis, self.batches)
        self._keeper = Keeper(self.batches, self.desk, records)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await asyncio.gather(self.desk.look(), self.evaluator.look())
        with contextlib.suppress(QueueUnavailable):
            await self._keeper.beat()  # before the first batch, which others could take for a dead gateway's
        loops = [self.desk.deliver, self.desk.watch, self.quotas.renew]
        if self.evaluator.configured:
            loops += [self.evaluator.watch, self.quality.watch, self.quality.lane.run]
        loops.append(self._keeper.keep)
        self._tasks = [asyncio.create_task(_forever(loop)) for loop in loops]

    async def drain(self, limit_s: float) -> None:
        """Refuse new batches, let running ones end within `limit_s`, cancel or hand over the rest, and sign off."""
        await self.batches.drain(limit_s)
        await self._end(self._tasks[-1:])  # the keeper, whose signs of life must not follow
        with contextlib.suppress(QueueUnavailable):
            await self._records.leave()

    async def stop(self) -> None:
        """End at once what `drain` has not let end."""
        await self.drain(0.0)
        await self._end(self._tasks)
        await self.evaluator.close()
        await self.trajectories.close()
        if self._recorder is not None:
            await self._recorder.close()
        await self._redis.aclose()

    @staticmethod
    async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def readiness(self) -> Readiness:
        """Whether a batch that names no mode could be scored now, and what is missing.

        Without its evaluator a hybrid batch goes on with Lean alone, so that is a warning.
        """
        if not self.desk.lean_present:
            await self.desk.look()  # do not make a caller who waits for the start wait a second longer
        if self.evaluator.configured and not self.evaluator.present:
            await self.evaluator.look()
        missing = []
        if self.batches.draining:
            missing.append(Missing(component="gateway", detail="it is shutting down"))
        if not self.desk.reachable:
            missing.append(Missing(component="queue", detail="it does not answer"))
        elif not self.desk.fleet.workers:
            missing.append(Missing(component="lean", detail="no worker announces itself"))
        elif not self.desk.lean_present:
            missing.append(Missing(component="lean", detail="no engine is warm yet"))
        warnings = []
        if len(self.desk.fleet.identities) > 1:
            warnings.append("workers run different Leans: verdicts are not taken from the cache")
        if self.evaluator.configured and not self.evaluator.present:
            warnings.append(f"no evaluator can predict now: {self.evaluator.what_is_missing()}")
        warnings += self._other_leans()
        warnings += (
            f"the model {model.name} is a demonstration" for model in self.evaluator.models if model.demonstration
        )
        warnings += self.quality.warnings
        return Readiness(
            status="not_ready" if missing else "ready",
            missing=tuple(missing),
            warnings=tuple(warnings),
            lean=self.desk.fleet.readiness() if self.desk.reachable else None,
            evaluator=self.evaluator.readiness(),
        )

    def _other_leans(self) -> list[str]:
        """Models that were trained for another Lean than the workers run."""
        leans = [identity.toolchain for identity in self.desk.fleet.identities]
        found = other_lean(self.evaluator.models, leans)
        metrics.EVALUATOR_TOOLCHAIN_MISMATCH.set(bool(found))
        return [f"the model {m.name} was trained for Lean {m.toolchain}, workers run {', '.join(leans)}" for m in found]


def _evaluator_desk(settings: GatewaySettings) -> EvaluatorDesk:
    key = None if settings.evaluator_key is None else settings.evaluator_key.get_secret_value()
    urls = [url.strip() for url in settings.evaluator_urls.split(",") if url.strip()]
    try:
        return EvaluatorDesk(urls, key, settings.evaluator_silence_s)
    except ValueError as error:
        raise SettingsError(f"gateway.evaluator_urls: {error}") from None


async def _forever(loop: Callable[[], Awaitable[None]]) -> None:
    """Keep one of the process's loops going: without it the gateway would look alive and answer nothing."""
    while True:
        try:
            await loop()
        except Exception:
            get_logger().exception("gateway_loop_failed", loop=loop.__qualname__)
        await asyncio.sleep(_LOOP_PAUSE_S)
