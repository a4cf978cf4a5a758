"""Jobs: accepted, followed by events, cancelled, and carried over the end of their gateway."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from reward_gateway.batches import records
from services.contracts.jobs import Job
from tests.reward_gateway.place import Place, Served, candidates, until, valid


async def submit(gateway: Served, *names: str, **options: Any) -> str:
    answer = await gateway.client.post("/v1/proofs/jobs", json={"candidates": candidates(*names), **options})
    assert answer.status_code == 202, answer.text
    job = Job.model_validate_json(answer.content)
    assert answer.headers["location"] == f"/v1/proofs/jobs/{job.id}"
    return job.id


async def get(gateway: Served, job_id: str) -> Job:
    answer = await gateway.client.get(f"/v1/proofs/jobs/{job_id}")
    assert answer.status_code == 200, answer.text
    return Job.model_validate_json(answer.content)


async def ended(gateway: Served, job_id: str, limit_s: float = 20) -> Job:
    async with asyncio.timeout(limit_s):
        while True:
            job = await get(gateway, job_id)
            if job.state.value != "running":
                return job
            await asyncio.sleep(0.05)


async def events(gateway: Served, job_id: str, last: int | None = None) -> list[tuple[int, str, dict[str, Any]]]:
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    told: list[tuple[int, str, dict[str, Any]]] = []
    async with gateway.client.stream("GET", f"/v1/proofs/jobs/{job_id}/events", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        event: dict[str, str] = {}
        async for line in answer.aiter_lines():
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
            elif event:
                told.append((int(event["id"]), event["event"], json.loads(event["data"])))
                event = {}
    return told


async def test_a_job_goes_on_alone_and_its_result_can_be_fetched(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway()
    job = await ended(gateway, await submit(gateway, "good", "wrong_1", "good"))
    assert job.state.value == "done"
    assert job.result is not None
    assert [r.verdict.value for r in job.result.results] == ["valid", "invalid", "valid"]
    assert job.result.batch_id == job.id
    assert (job.progress.candidates, job.progress.decided, job.progress.lean) == (3, 3, 3)


async def test_events_tell_progress_and_the_end_and_can_be_resumed(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None if "slow_" in task.code else valid(task))
    gateway = await place.http()
    job_id = await submit(gateway, "a", "b", "slow_c")
    following = asyncio.create_task(events(gateway, job_id))
    await until(lambda: worker.held)
    await asyncio.sleep(0.6)
    await worker.finish_held(valid(worker.checked[0]))
    told = await following
    assert [name for _, name, _ in told[:-1]] == ["progress"] * (len(told) - 1)
    assert [number for number, *_ in told] == sorted({number for number, *_ in told})
    number, name, job = told[-1]
    assert (number, name, job["state"]) == (4, "end", "done")
    assert job["result"]["results"][2]["verdict"] == "valid"
    assert [number for number, *_ in await events(gateway, job_id, last=2)] == [4]
    done = await gateway.client.get(f"/v1/proofs/jobs/{job_id}/events", headers={"Last-Event-ID": "4"})
    assert done.status_code == 204


async def test_a_cancelled_job_stops_its_checks_and_says_so(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    gateway = await place.http()
    job_id = await submit(gateway, "a", "b")
    await until(lambda: len(worker.held) == 2)
    following = asyncio.create_task(events(gateway, job_id))
    await asyncio.sleep(0.3)
    answer = await gateway.client.delete(f"/v1/proofs/jobs/{job_id}")
    assert answer.json()["state"] == "cancelled"
    await until(lambda: not worker.held, 1)
    assert (await following)[-1][2]["state"] == "cancelled"
    assert (await get(gateway, job_id)).state.value == "cancelled"
    again = await gateway.client.delete(f"/v1/proofs/jobs/{job_id}")
    assert (again.status_code, again.json()["state"]) == (200, "cancelled")


async def test_a_job_that_is_done_is_not_cancelled(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway()
    job_id = await submit(gateway, "a")
    await ended(gateway, job_id)
    assert (await gateway.client.delete(f"/v1/proofs/jobs/{job_id}")).json()["state"] == "done"


async def test_another_gateway_sees_and_cancels_a_job(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    one, two = await place.gateway(), await place.gateway()
    job_id = await submit(one, "a")
    await until(lambda: worker.held)
    assert (await get(two, job_id)).state.value == "running"
    assert (await two.client.delete(f"/v1/proofs/jobs/{job_id}")).json()["state"] == "cancelled"
    await until(lambda: not worker.held, 1)
    await until(lambda: not one.gateway.batches.running, 5)


async def test_a_job_is_the_same_batch_as_a_request_that_waits(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    gateway = await place.http()
    body = {"candidates": candidates("t"), "batch_id": "b1"}
    waiting = asyncio.create_task(gateway.client.post("/v1/proofs/score", json=body))
    await until(lambda: worker.held)
    assert (await gateway.client.post("/v1/proofs/jobs", json=body)).status_code == 202
    waiting.cancel()  # it is a job now, and goes on
    await asyncio.gather(waiting, return_exceptions=True)
    await asyncio.sleep(0.1)
    await worker.finish_held(valid(worker.checked[0]))
    job = await ended(gateway, "b1")
    answer = await gateway.client.post("/v1/proofs/score", json=body)
    assert job.result is not None
    assert answer.json() == job.result.model_dump(mode="json")


async def test_a_job_survives_the_death_of_its_gateway_and_runs_nothing_twice(place: Place, monkeypatch: Any) -> None:
    monkeypatch.setattr(records, "ALIVE_MS", 2_000)
    worker = await place.worker(judge=lambda task: None if "slow_" in task.code else valid(task))
    first = await place.gateway()
    job_id = await submit(first, "a", "b", "slow_c")
    await until(lambda: worker.held)
    await asyncio.sleep(1.2)  # a sign of life with the progress
    await first.die()
    second = await place.gateway()
    assert (await get(second, job_id)).state.value == "running"
    await worker.finish_held(valid(worker.checked[0]))  # while nobody is at home
    job = await ended(second, job_id)
    assert job.result is not None
    assert [r.verdict.value for r in job.result.results] == ["valid"] * 3
    assert len(worker.checked) == 3
    assert job.progress.elapsed_s < 15


async def test_a_dead_gateways_synchronous_batches_are_cancelled_by_others(place: Place, monkeypatch: Any) -> None:
    monkeypatch.setattr(records, "ALIVE_MS", 1_000)
    worker = await place.worker(judge=lambda task: None)
    first = await place.gateway()
    request = asyncio.create_task(first.score(candidates("a"), batch_id="b1"))
    await until(lambda: worker.held)
    request.cancel()
    await first.die()
    second = await place.gateway()
    await until(lambda: not worker.held, 10)
    worker.judge = valid
    answer = await second.score(candidates("a"), batch_id="b1")
    assert answer.json()["results"][0]["verdict"] == "valid"


async def test_a_job_is_handed_over_when_its_gateway_stops(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    first, second = await place.gateway(), await place.gateway()
    job_id = await submit(first, "a")
    await until(lambda: worker.held)
    await first.stop()
    assert worker.held  # its check goes on
    assert (await get(second, job_id)).state.value == "running"
    await worker.finish_held(valid(worker.checked[0]))
    assert (await ended(second, job_id)).state.value == "done"
    assert len(worker.checked) == 1


async def test_a_refused_job_leaves_nothing_behind(place: Place) -> None:
    gateway = await place.gateway()
    body = {"candidates": candidates("a"), "batch_id": "b1"}
    assert (await gateway.client.post("/v1/proofs/jobs", json=body)).status_code == 503
    assert (await gateway.client.get("/v1/proofs/jobs/b1")).status_code == 404


async def test_jobs_that_are_not_there(place: Place) -> None:
    gateway = await place.gateway()
    for path in ("/v1/proofs/jobs/none", "/v1/proofs/jobs/none/events", "/v1/proofs/jobs/%00", "/v1/proofs/jobs/a%2Fb"):
        answer = await gateway.client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
    assert (await gateway.client.delete("/v1/proofs/jobs/none")).status_code == 404
