"""Keeps the engines of a pool running: starts them, asks for their health, starts a dead one again."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator

from gpu_evaluator.engines.base import EngineFault
from gpu_evaluator.pool import Pair, Pool, Stage
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.within import within

_FIRST_DELAY_S, _MOST_DELAY_S = 1.0, 60.0
_SECOND_LOOK_S = 1.0


class Keeper:
    """One task for each engine, or for each pair whose engines take turns. `health_s`: seconds between two looks."""

    def __init__(self, pool: Pool, *, health_s: float) -> None:
        self._pool = pool
        self._health_s = health_s
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Bring everything up in the background; `Pair.up` tells what is there."""
        for pair in self._pool.pairs:
            if pair.swap is None:
                self._tasks += [asyncio.create_task(self._keep(pair, (stage,))) for stage in Stage]
            else:
                self._tasks.append(asyncio.create_task(self._keep(pair, tuple(Stage))))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._pool.stop()
        for pair in self._pool.pairs:
            await _stop(pair, tuple(Stage))

    async def _keep(self, pair: Pair, stages: tuple[Stage, ...]) -> None:
        while True:
            await self._bring_up(pair, stages)
            await self._until_dead(pair, stages)
            for stage in stages:
                metrics.EVALUATOR_RESTARTS.labels(stage.value).inc()
                self._pool.mark(pair, stage, False)
            await _stop(pair, stages)

    async def _bring_up(self, pair: Pair, stages: tuple[Stage, ...]) -> None:
        log = get_logger().bind(pair=pair.name, stages=[stage.value for stage in stages])
        for delay in _delays():
            try:
                if pair.swap is None:
                    for stage in stages:
                        await pair.engine(stage).start()
                else:
                    await pair.swap.load(Stage.GATE)
                    pair.stage, pair.turn_began = Stage.GATE, time.monotonic()
            except EngineFault as error:
                log.error("engine_does_not_start", error=str(error), again_in_s=delay)
                await _stop(pair, stages)
                await asyncio.sleep(delay)
            else:
                log.info("engine_up", models=[pair.engine(stage).identity.name for stage in stages])
                for stage in stages:
                    self._pool.mark(pair, stage, True)
                return

    async def _until_dead(self, pair: Pair, stages: tuple[Stage, ...]) -> None:
        misses = 0
        while misses < 2 and all(pair.up[stage] for stage in stages):
            with contextlib.suppress(asyncio.TimeoutError):
                async with within(_SECOND_LOOK_S if misses else self._health_s):
                    await pair.suspected.wait()
            pair.suspected.clear()
            well = True
            for stage in stages:
                if pair.loaded(stage):
                    healthy = await pair.engine(stage).healthy()
                    well = well and (healthy or not pair.loaded(stage))  # a change-over began meanwhile
            misses = 0 if well else misses + 1
            if misses:
                await asyncio.sleep(_SECOND_LOOK_S if misses == 1 else 0)
        get_logger().error("engine_dead", pair=pair.name, stages=[stage.value for stage in stages])


async def _stop(pair: Pair, stages: tuple[Stage, ...]) -> None:
    for stage in stages:
        try:
            await pair.engine(stage).stop()
        except EngineFault as error:
            get_logger().error("engine_does_not_stop", pair=pair.name, stage=stage.value, error=str(error))


def _delays() -> Iterator[float]:
    delay = _FIRST_DELAY_S
    while True:
        yield delay
        delay = min(2 * delay, _MOST_DELAY_S)
