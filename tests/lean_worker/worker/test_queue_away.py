"""The worker while its line to the queue is cut."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from services.contracts.outcomes import Verdict
from tests.lean_worker.scripted import ScriptedEngine
from tests.lean_worker.worker.conftest import LEASE_S, Desk, until, working
from tests.lean_worker.worker.cuttable import Line


async def test_results_of_a_short_outage_are_kept_and_sent_once(desk: Desk, tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with Line(desk.url, tmp_path).open() as line, working(desk, engine, url=line.url) as worker:
        await desk.submit("slow:0.2")
        await until(lambda: engine.busy)
        line.cut()
        await until(lambda: not engine.busy)
        assert not worker.queue_answers
        await asyncio.sleep(0.1)
        assert desk.outcomes == {}
        line.mend()
        outcome = await desk.outcome("slow:0.2", LEASE_S)
        assert (outcome.worker, outcome.verdict) == ("w", Verdict.VALID)
        await desk.submit("ok")
        await desk.outcome("ok")
    assert engine.checked == ["slow:0.2", "ok"]
    assert (engine.starts, engine.restarted) == (1, [])  # its engine stayed warm


async def test_an_outage_longer_than_the_lease_gives_the_job_to_another(desk: Desk, tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with Line(desk.url, tmp_path).open() as line, working(desk, engine, url=line.url, name="cut"):
        await desk.submit("slow:0.3")
        await until(lambda: engine.busy)
        line.cut()
        async with working(desk, ScriptedEngine(), name="other"):
            outcome = await desk.outcome("slow:0.3", 5 * LEASE_S)
            assert outcome.worker == "other"
            line.mend()
        await desk.submit("ok")
        assert (await desk.outcome("ok")).worker == "cut"
    assert len(desk.outcomes) == 2  # `Desk` itself asserts that nothing is answered twice


async def test_drain_during_an_outage_does_not_hang(desk: Desk, tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with Line(desk.url, tmp_path).open() as line, working(desk, engine, url=line.url, drain_s=0.0) as worker:
        await desk.submit("slow:30")
        await until(lambda: engine.busy)
        line.cut()
        begin = time.monotonic()
        await worker.drain()
        assert time.monotonic() - begin < 4
        await until(lambda: engine.stopped)
