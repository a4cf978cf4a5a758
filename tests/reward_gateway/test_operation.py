"""Health, readiness, overload, drain, outage: what an operator and a balancer see."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator

import httpx
import pytest

from reward_gateway.limits.admission import retry_after_s
from services.contracts.health import Readiness
from services.contracts.lean import WorkerInfo
from services.queue import QueueStats
from services.queue.server import EmbeddedServer
from tests.reward_gateway.place import IDENTITY, Place, candidates, until, valid


async def test_readiness_says_what_is_missing(place: Place) -> None:
    gateway = await place.gateway()
    answer = await gateway.client.get("/readyz")
    assert answer.status_code == 503
    assert Readiness.model_validate_json(answer.content).missing[0].detail == "no worker announces itself"
    worker = await place.worker(ready=0)
    answer = await gateway.client.get("/readyz")
    assert (answer.status_code, answer.json()["missing"][0]["detail"]) == (503, "no engine is warm yet")
    await worker.stop()
    await place.worker()
    answer = await gateway.client.get("/readyz")
    assert answer.status_code == 200
    ready = Readiness.model_validate_json(answer.content)
    assert ready.lean is not None
    assert (ready.lean.workers, ready.lean.ready) == (1, 2)


async def test_a_balancer_may_ask_for_the_head_alone(place: Place) -> None:
    gateway = await place.gateway()
    assert [(await gateway.client.head(path)).status_code for path in ("/healthz", "/readyz")] == [200, 503]
    assert (await gateway.client.head("/v1/live")).status_code == 405


async def test_engines_that_are_just_restarting_are_no_outage(place: Place) -> None:
    worker = await place.worker()
    gateway = await place.gateway()
    assert (await gateway.client.get("/readyz")).status_code == 200
    info = WorkerInfo(worker=worker.name, identity=IDENTITY, engines=2, ready=0)
    await worker.queue.announce(worker.name, info.model_dump_json().encode(), 60)
    await gateway.gateway.desk.look()
    assert (await gateway.client.get("/readyz")).status_code == 200
    assert (await gateway.score(candidates("t"))).json()["results"][0]["verdict"] == "valid"
    await worker.queue.announce(worker.name, b"", 0)
    await gateway.gateway.desk.look()
    assert (await gateway.client.get("/readyz")).status_code == 503


async def test_the_queue_is_down(place: Place) -> None:
    place.url = "unix:///nowhere/redis.sock"
    gateway = await place.gateway()
    answer = await gateway.client.get("/readyz")
    assert (answer.status_code, answer.json()["missing"][0]["component"]) == (503, "queue")
    answer = await gateway.score(candidates("t"))
    assert (answer.status_code, answer.json()["code"]) == (503, "queue_unavailable")
    answer = await gateway.client.get("/v1/proofs/jobs/x")
    assert (answer.status_code, answer.json()["code"]) == (503, "queue_unavailable")
    assert (await gateway.client.get("/healthz")).json() == {"status": "ok"}


async def test_a_queue_that_lost_its_memory_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of its own, flushed, and then of another epoch: what a crash without persistence looks like."""
    with EmbeddedServer() as server:
        async with contextlib.AsyncExitStack() as stack:
            place = Place(server.url, "memory", stack)
            worker = await place.worker(judge=lambda task: None)
            gateway = await place.gateway()
            request = asyncio.create_task(gateway.score(candidates("t")))
            await until(lambda: worker.held)
            await worker.queue._redis.flushall()
            worker.held.clear()
            worker.judge = valid
            queue = gateway.gateway.desk._queue
            stats = queue.stats

            async def stats_after_a_restart() -> QueueStats:
                return dataclasses.replace(await stats(), epoch="another")

            monkeypatch.setattr(queue, "stats", stats_after_a_restart)
            assert (await request).json()["results"][0]["verdict"] == "valid"


async def test_a_loop_of_the_process_that_fails_starts_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.worker()
    gateway = await place.gateway()
    desk, failures = gateway.gateway.desk, 0
    pass_on = desk._pass_on

    def fails_once(*arguments: object) -> None:
        nonlocal failures
        failures += 1
        if failures == 1:
            raise RuntimeError("a fault of our own")
        pass_on(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(desk, "_pass_on", fails_once)
    answer = await gateway.score(candidates("t"))
    assert answer.json()["results"][0]["verdict"] == "valid"
    assert failures == 2


async def test_too_much_in_flight_is_429_with_a_retry_that_is_honest(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    gateway = await place.gateway(max_batches=1)
    first = asyncio.create_task(gateway.score(candidates("t"), cutoff={"deadline_s": 2}))
    await until(lambda: worker.held)
    refused = await gateway.score(candidates("u"))
    assert (refused.status_code, refused.json()["code"]) == (429, "too_much_in_flight")
    wait = int(refused.headers["retry-after"])
    assert 1 <= wait <= 2
    await asyncio.sleep(wait)
    await first
    second = asyncio.create_task(gateway.score(candidates("u"), cutoff={"deadline_s": 0.2}))
    assert (await second).status_code == 200


async def test_candidates_in_flight_are_bounded_but_one_batch_always_fits(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    gateway = await place.gateway(max_in_flight=2)
    first = asyncio.create_task(gateway.score(candidates("a", "b", "c"), cutoff={"deadline_s": 1}))
    await until(lambda: len(worker.held) == 3)
    assert (await gateway.score(candidates("d"))).status_code == 429
    assert (await first).status_code == 200


def test_the_retry_is_the_time_that_the_excess_takes_or_where_that_is_unknown_the_next_end() -> None:
    assert retry_after_s(100, 10.0, None) == 10
    assert retry_after_s(100, 10.0, 3.2) == 10
    assert retry_after_s(math.inf, 10.0, 7.0) == 7
    assert retry_after_s(100, 0.0, None) == 600
    assert retry_after_s(1, 1e9, 5.0) == 1


async def test_a_full_queue_is_429(place: Place) -> None:
    await place.worker(judge=lambda task: None)
    settings = place.settings()
    object.__setattr__(settings.queue, "max_depth", 3)
    place.settings = lambda **_: settings  # type: ignore[method-assign]
    gateway = await place.gateway()
    answer = await gateway.score(candidates(*"abcdef"))
    assert (answer.status_code, answer.json()["code"]) == (429, "queue_full")
    assert "retry-after" in answer.headers
    assert (await gateway.gateway.desk._queue.stats()).depth == 0


async def test_draining_lets_batches_end_and_refuses_new_ones(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    gateway = await place.gateway()
    running = asyncio.create_task(gateway.score(candidates("t")))
    await until(lambda: worker.held)
    drain = asyncio.create_task(gateway.gateway.drain(10))
    await asyncio.sleep(0.05)
    ready = await gateway.client.get("/readyz")
    assert (ready.status_code, ready.json()["missing"][0]["component"]) == (503, "gateway")
    refused = await gateway.score(candidates("u"))
    assert (refused.status_code, refused.json()["code"]) == (503, "shutting_down")
    await worker.finish_held(valid(worker.checked[0]))
    assert (await running).status_code == 200
    await drain


async def test_a_drain_that_takes_too_long_cancels(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    gateway = await place.gateway()
    running = asyncio.create_task(gateway.score(candidates("t")))
    await until(lambda: worker.held)
    await gateway.gateway.drain(0.1)
    answer = await running
    assert (answer.status_code, answer.json()["code"]) == (503, "shutting_down")
    await until(lambda: not worker.held, 1)


async def test_metrics_are_served_with_the_gateways_series(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway()
    await gateway.score(candidates("t", "wrong_1"))
    text = (await gateway.client.get("/metrics")).text
    for name in ("lean_reward_batches_total", "lean_reward_rewards_total", "lean_reward_queue_depth"):
        assert name in text
    assert 'lean_reward_rewards_total{lean_status="ok",source="lean",verdict="invalid"}' in text


@contextlib.asynccontextmanager
async def process_of(place: Place) -> AsyncIterator[tuple[asyncio.subprocess.Process, httpx.AsyncClient]]:
    """A gateway as a process of its own, alive and ready."""
    environment = {**os.environ, "LEAN_REWARD_QUEUE_URL": place.url, "LEAN_REWARD_QUEUE_PREFIX": place.prefix}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.runtime.cli", "gateway", "--port", str(port), env=environment
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            async with asyncio.timeout(20):
                while True:
                    try:
                        if (await client.get("/readyz")).status_code == 200:
                            break
                    except httpx.TransportError:
                        await asyncio.sleep(0.1)
            yield process, client
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_the_process_drains_and_stops_on_sigterm(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    async with process_of(place) as (process, client):
        running = asyncio.create_task(client.post("/v1/proofs/score", json={"candidates": candidates("t")}))
        await until(lambda: worker.held)
        process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.5)
        assert (await client.get("/readyz")).status_code == 503
        await worker.finish_held(valid(worker.checked[0]))
        assert (await running).status_code == 200
        assert await asyncio.wait_for(process.wait(), 5) == 0


async def test_an_idle_process_stops_at_once(place: Place) -> None:
    await place.worker()
    async with process_of(place) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 3) == 0


@pytest.mark.slow
async def test_a_job_survives_kill_9_of_its_gateway(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    async with process_of(place) as (process, client):
        job = await client.post("/v1/proofs/jobs", json={"candidates": candidates("a", "b"), "batch_id": "b1"})
        assert job.status_code == 202
        await until(lambda: len(worker.held) == 2)
        process.kill()
        await process.wait()
    await worker.finish_held(valid(worker.checked[0]))
    gateway = await place.gateway()
    for _ in range(100):
        answer = (await gateway.client.get("/v1/proofs/jobs/b1")).json()
        if answer["state"] != "running":
            break
        await asyncio.sleep(0.25)
    assert [r["verdict"] for r in answer["result"]["results"]] == ["valid", "valid"]
    assert len(worker.checked) == 2
