"""The worker on a real queue, with scripted engines for the faults that real Lean shows rarely."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time

import pytest
from prometheus_client import REGISTRY

from lean_worker.worker import Worker
from services.contracts.lean import WorkerInfo
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.queue import Claim, Completion, connect
from tests.lean_worker.scripted import ScriptedEngine
from tests.lean_worker.worker.conftest import LEASE_S, Desk, queue_for, until, working


def metric(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"lean_reward_{name}", labels) or 0.0


async def test_outcomes_are_judged_signed_and_delivered(desk: Desk) -> None:
    engine = ScriptedEngine()
    async with working(desk, engine):
        await desk.submit("ok", "wrong")
        right, wrong = await desk.outcome("ok"), await desk.outcome("wrong")
    assert (right.status, right.verdict) == (LeanStatus.OK, Verdict.VALID)
    assert (wrong.status, wrong.verdict, wrong.reason) == (LeanStatus.OK, Verdict.INVALID, Reason.COMPILE_ERROR)
    assert right.worker == "w"
    assert right.identity == engine.identity
    assert engine.stopped


async def test_engines_are_warm_before_the_first_claim(desk: Desk) -> None:
    await desk.submit("ok")
    engine = ScriptedEngine()
    async with working(desk, engine, headers=("", "import Std", "import Mathlib")) as worker:
        await desk.outcome("ok")
        assert engine.opened == ["import Std", ""]
        assert worker.slots[0].warm_headers == ("", "import Std")  # the other is a setting's fault, said in the log


async def test_one_crash_is_tried_again_on_a_clean_engine(desk: Desk) -> None:
    engine = ScriptedEngine()
    async with working(desk, engine):
        await desk.submit("crash ok", "oom wrong")
        assert (await desk.outcome("crash ok")).verdict is Verdict.VALID
        assert (await desk.outcome("oom wrong")).reason is Reason.COMPILE_ERROR
    assert engine.restarted == ["crashed", "out_of_memory"]


@pytest.mark.parametrize("code", ["crash", "oom", "crash oom"])
async def test_a_crash_that_repeats_is_the_candidates_fault(desk: Desk, code: str) -> None:
    engine = ScriptedEngine()
    async with working(desk, engine):
        await desk.submit(code)
        outcome = await desk.outcome(code)
        assert (outcome.status, outcome.verdict) == (LeanStatus.OK, Verdict.INVALID)
        assert outcome.reason is Reason.RESOURCE_EXHAUSTED
        await desk.submit("ok")
        await desk.outcome("ok")
    assert engine.checked == [code, code, "ok"]
    assert len(engine.restarted) == 2  # one before the retry, one before the neighbour


async def test_a_timeout_is_no_verdict_and_is_not_retried(desk: Desk) -> None:
    engine = ScriptedEngine()
    async with working(desk, engine):
        await desk.submit("timeout")
        outcome = await desk.outcome("timeout")
    assert (outcome.status, outcome.verdict) == (LeanStatus.TIMEOUT, Verdict.UNKNOWN)
    assert engine.checked == ["timeout"]


async def test_a_lost_engine_is_restarted_and_the_candidate_checked_again(desk: Desk) -> None:
    engine = ScriptedEngine()
    async with working(desk, engine):
        await desk.submit("lost ok")
        assert (await desk.outcome("lost ok")).verdict is Verdict.VALID
    assert engine.restarted == ["unavailable"]


@pytest.mark.parametrize("code", ["lost", "crash lost", "lost crash", "bug"])
async def test_our_own_faults_never_become_a_verdict(desk: Desk, code: str) -> None:
    engine = ScriptedEngine()
    async with working(desk, engine):
        await desk.submit(code, "ok")
        outcome = await desk.outcome(code)
        assert (outcome.status, outcome.verdict) == (LeanStatus.CRASHED, Verdict.UNKNOWN)
        assert outcome.reason is Reason.INFRASTRUCTURE
        assert (await desk.outcome("ok")).verdict is Verdict.VALID


async def test_an_engine_that_hangs_beyond_the_limit_is_replaced(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lean_worker.slot._HANGS_S", 0.1)
    engine = ScriptedEngine()
    async with working(desk, engine):
        await desk.submit("slow:60 ok", timeout_s=0.1)
        assert (await desk.outcome("slow:60 ok")).verdict is Verdict.VALID
    assert engine.restarted == ["unavailable"]


async def test_a_check_that_breaks_off_by_itself_is_not_lost(desk: Desk) -> None:
    engine = ScriptedEngine()
    async with working(desk, engine):
        await desk.submit("breaks ok")
        assert (await desk.outcome("breaks ok")).verdict is Verdict.VALID
    assert engine.restarted == ["unavailable"]


async def test_an_engine_that_cannot_restart_hands_its_job_to_another(desk: Desk) -> None:
    bad, good = ScriptedEngine(), ScriptedEngine()
    await desk.submit("lost ok")
    async with working(desk, bad, name="bad", ready=1):
        await until(lambda: bad.checked == ["lost ok"] or bool(desk.outcomes))
    # The first worker restarted fine; now one that cannot.
    assert (await desk.outcome("lost ok")).worker == "bad"
    broken = ScriptedEngine()
    async with working(desk, broken, name="broken") as worker:
        broken.broken = True
        await desk.submit("lost lost2 ok")
        await until(lambda: not worker.slots[0].ready)
        assert desk.outcomes.keys() == {"lost ok"}
        async with working(desk, good, name="good"):
            # Scripts count runs for each engine, so the good one is lost once too, and restarts.
            outcome = await desk.outcome("lost lost2 ok")
        assert outcome.worker == "good"
        broken.broken = False
        await until(lambda: worker.slots[0].ready, 5)
    assert metric("claims_released_total", cause="engine") > 0


async def test_an_idle_engine_that_ends_is_replaced_before_a_job_comes(desk: Desk) -> None:
    engine, other = ScriptedEngine(), ScriptedEngine()
    async with working(desk, engine, other) as worker:
        engine.broken = True
        engine.dies.set()
        await until(lambda: not worker.slots[0].ready)
        assert (worker.info().engines, worker.info().ready) == (2, 1)
        await desk.submit(*(f"ok #{i}" for i in range(5)))
        for i in range(5):
            await desk.outcome(f"ok #{i}")
        assert engine.checked == []
        engine.broken = False
        await until(lambda: worker.info().ready == 2)
        assert worker.info().restarts == len(engine.restarted) >= 1


async def test_a_job_that_costs_every_engine_does_not_circulate(desk: Desk) -> None:
    """Each worker loses its engine for good under it; after three it is answered."""
    engines = [ScriptedEngine() for _ in range(4)]
    async with contextlib.AsyncExitStack() as stack:
        for number, engine in enumerate(engines):
            await stack.enter_async_context(working(desk, engine, name=f"w{number}"))
            engine.broken = True
        await desk.submit("lost")
        outcome = await desk.outcome("lost")
        assert (outcome.status, outcome.reason) == (LeanStatus.CRASHED, Reason.INFRASTRUCTURE)
        assert sorted(len(engine.checked) for engine in engines) == [0, 1, 1, 1]


async def test_an_engine_that_does_not_start_is_tried_again_and_takes_nothing(desk: Desk) -> None:
    engine = ScriptedEngine()
    engine.broken = True
    async with working(desk, engine, ready=0) as worker:
        await desk.submit("ok")
        await asyncio.sleep(0.2)
        assert (await desk.queue.stats()).running == 0
        assert await desk.queue.workers() == {}
        engine.broken = False
        assert (await desk.outcome("ok")).verdict is Verdict.VALID
        assert worker.slots[0].ready


async def test_one_slow_candidate_holds_back_no_other(desk: Desk) -> None:
    async with working(desk, ScriptedEngine(), ScriptedEngine(), drain_s=0.0):
        await desk.submit("slow:30")
        await desk.submit(*(f"ok #{i}" for i in range(200)))
        await until(lambda: len(desk.outcomes) == 200, 10)


async def test_a_job_taken_ahead_goes_to_an_idle_worker_while_ours_is_slow(desk: Desk) -> None:
    async with working(desk, ScriptedEngine(), name="slow", drain_s=0.0) as slow:
        await desk.submit("slow:30")
        await until(lambda: slow.slots[0].engine.busy)  # type: ignore[attr-defined]
        await desk.submit("ok")
        await asyncio.sleep(0.05)
        async with working(desk, ScriptedEngine(), name="idle"):
            outcome = await desk.outcome("ok", 2)
        assert outcome.worker == "idle"


async def test_higher_priority_is_checked_first(desk: Desk) -> None:
    engine = ScriptedEngine()
    await desk.submit(*(f"ok #{i}" for i in range(50)))
    await desk.submit("ok #urgent", priority=10)
    async with working(desk, engine):
        await until(lambda: len(desk.outcomes) == 51)
    assert "ok #urgent" in engine.checked[:2]


async def test_the_limit_is_that_of_the_most_patient_subscriber(desk: Desk) -> None:
    limits: list[float] = []

    class Watching(ScriptedEngine):
        async def _act(self, task):  # type: ignore[no-untyped-def]
            limits.append(task.timeout_s)
            return await super()._act(task)

    await desk.submit("ok", timeout_s=5)
    await desk.submit("ok", timeout_s=77, subscriber="patient")
    async with working(desk, Watching()):
        await until(lambda: limits == [77.0])


async def test_cancellation_stops_a_running_check_within_200_ms(desk: Desk) -> None:
    engine = ScriptedEngine()
    async with working(desk, engine):
        await desk.submit("slow:30")
        await until(lambda: engine.busy)
        begin = time.monotonic()
        await desk.queue.unsubscribe("batch")
        await until(lambda: not engine.busy)
        assert time.monotonic() - begin < 0.2
        await desk.submit("ok")
        await desk.outcome("ok")
    assert engine.cancelled == ["slow:30"]
    assert desk.outcomes.keys() == {"ok"}


async def test_a_check_that_another_batch_still_wants_goes_on(desk: Desk) -> None:
    engine = ScriptedEngine()
    async with working(desk, engine):
        await desk.submit("slow:0.4")
        await desk.submit("slow:0.4", subscriber="other")
        await until(lambda: engine.busy)
        await desk.queue.unsubscribe("batch")
        assert (await desk.outcome("slow:0.4")).verdict is Verdict.VALID


async def test_leases_of_slow_checks_are_renewed(desk: Desk) -> None:
    engine = ScriptedEngine()
    code = f"slow:{2.5 * LEASE_S}"
    async with working(desk, engine):
        await desk.submit(code)
        assert (await desk.outcome(code)).verdict is Verdict.VALID
    assert engine.checked == [code]


async def test_a_dead_workers_job_comes_back(desk: Desk) -> None:
    await desk.submit("ok")
    assert len(await desk.queue.claim("dead", 1, 1)) == 1
    async with working(desk, ScriptedEngine()):
        outcome = await desk.outcome("ok", 4 * LEASE_S)
    assert outcome.worker == "w"


async def test_drain_of_an_idle_worker_is_quick_and_withdraws_it(desk: Desk) -> None:
    engine = ScriptedEngine()
    async with working(desk, engine) as worker:
        await asyncio.sleep(0.1)
        assert set(await desk.queue.workers()) == {"w"}
        begin = time.monotonic()
        await worker.drain()
        await until(lambda: engine.stopped)
        assert time.monotonic() - begin < 1.0
        assert await desk.queue.workers() == {}


async def test_drain_lets_a_check_end_within_its_grace(desk: Desk) -> None:
    engine = ScriptedEngine()
    async with working(desk, engine, drain_s=5.0) as worker:
        await desk.submit("slow:0.3", "ok")
        await until(lambda: engine.busy)
        await worker.drain()
        assert (await desk.outcome("slow:0.3")).verdict is Verdict.VALID
    assert (await desk.queue.stats()).depth == 1  # the other was given back


async def test_drain_gives_back_what_does_not_end_and_counts_no_attempt(desk: Desk) -> None:
    engine = ScriptedEngine()
    for name in ("first", "second", "third"):  # more often than a job may lose its worker
        async with working(desk, engine, name=name, drain_s=0.05):
            await desk.submit("slow:30")
            await until(lambda: engine.busy)
        stats = await desk.queue.stats()
        assert (stats.depth, stats.running) == (1, 0)
    (claim,) = await desk.queue.claim("reader", 1, 1)
    assert claim.attempt == 1
    assert desk.crashed == []


async def test_a_result_under_a_stale_token_changes_nothing(desk: Desk) -> None:
    engine = ScriptedEngine()
    stale = metric("results_stale_total")
    # No heartbeat within the check, so that nobody tells the worker that it lost its lease.
    async with working(desk, engine, claim_ahead=0, lease_s=60.0) as worker:
        await desk.submit("slow:0.2")
        await until(lambda: engine.busy)
        held = next(iter(worker._held.values()))
        await desk.queue.release([held.claim])
        (other,) = await desk.queue.claim("other", 1, 1)
        await until(lambda: metric("results_stale_total") > stale)
        assert desk.outcomes == {}
        assert (await desk.queue.complete([Completion(other, b'{"status":"ok","reason":"ok"}')])) == [True]
        assert (await desk.outcome("slow:0.2")).worker is None


async def test_a_heartbeat_tells_a_worker_that_its_lease_is_lost(desk: Desk) -> None:
    engine = ScriptedEngine()
    async with working(desk, engine, claim_ahead=0) as worker:
        await desk.submit("slow:30")
        await until(lambda: engine.busy)
        await desk.queue.release([next(iter(worker._held.values())).claim])
        assert len(await desk.queue.claim("other", 1, 1)) == 1
        await until(lambda: engine.cancelled == ["slow:30"], LEASE_S)
        assert not worker._held


async def test_an_unreadable_payload_is_our_fault_and_hurts_no_neighbour(desk: Desk) -> None:
    async with working(desk, ScriptedEngine()):
        await desk.submit_raw("strange", b'{"key": 1')
        await desk.submit("ok")
        strange = await desk.outcome("strange")
        assert (strange.status, strange.reason) == (LeanStatus.CRASHED, Reason.INFRASTRUCTURE)
        await desk.outcome("ok")


async def test_the_announcement_says_what_the_worker_is(desk: Desk) -> None:
    async with working(desk, ScriptedEngine(), ScriptedEngine(), headers=("", "import Std")):
        await asyncio.sleep(0.1)
        info = WorkerInfo.model_validate(json.loads((await desk.queue.workers())["w"]))
    assert (info.engines, info.ready, info.headers) == (2, 2, ("", "import Std"))
    assert info.rss_bytes > 2000
    assert abs(info.started_at - time.time()) < 60


async def test_a_fault_of_the_worker_itself_ends_it_loudly(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connect(desk.url) as redis:
        worker = Worker("w", queue_for(redis, desk.prefix), [ScriptedEngine()], lease_s=LEASE_S)

        def fail(claim: Claim) -> None:
            raise RuntimeError("a fault of ours")

        monkeypatch.setattr(worker, "_accept", fail)
        await desk.submit("ok")
        with pytest.raises(RuntimeError, match="a fault of ours"):
            await asyncio.wait_for(worker.run(), 5)
