"""Batch ids: the same id and body is the same batch; ids belong to the caller's key; who leaves and who stays."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from services.contracts.lean import CheckTask, LeanOutcome
from services.contracts.outcomes import LeanStatus, Reason
from tests.reward_gateway.place import Place, candidates, until, valid


async def test_the_same_id_and_body_is_joined_in_flight_and_answered_again_later(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    gateway = await place.gateway()
    first = asyncio.create_task(gateway.score(candidates("t"), batch_id="b1"))
    await until(lambda: worker.held)
    second = asyncio.create_task(gateway.score(candidates("t"), batch_id="b1"))
    await asyncio.sleep(0.1)
    await worker.finish_held(valid(worker.checked[0]))
    one, two = await first, await second
    assert one.json() == two.json()
    assert one.json()["batch_id"] == "b1"
    again = await gateway.score(candidates("t"), batch_id="b1")
    assert again.content == one.content
    assert len(worker.checked) == 1


async def test_the_same_id_with_another_body_is_409(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    gateway = await place.gateway()
    first = asyncio.create_task(gateway.score(candidates("t"), batch_id="b1"))
    await until(lambda: worker.held)
    conflict = await gateway.score(candidates("other"), batch_id="b1")
    assert (conflict.status_code, conflict.json()["code"]) == (409, "batch_conflict")
    await worker.finish_held(valid(worker.checked[0]))
    assert (await first).status_code == 200
    conflict = await gateway.score(candidates("other"), batch_id="b1")
    assert (conflict.status_code, conflict.json()["code"]) == (409, "batch_conflict")


async def test_ids_belong_to_the_callers_key(place: Place) -> None:
    await place.worker()
    keys = ",".join(f"{name}:{hashlib.sha256(name.encode()).hexdigest()}" for name in ("alice", "bob"))
    gateway = await place.gateway(keys=keys)
    alice, bob = ({"Authorization": f"Bearer {name}"} for name in ("alice", "bob"))
    body = {"candidates": candidates("t"), "batch_id": "b1"}
    assert (await gateway.client.post("/v1/proofs/score", json=body, headers=alice)).status_code == 200
    other = {**body, "candidates": candidates("wrong_t")}
    assert (await gateway.client.post("/v1/proofs/score", json=other, headers=bob)).status_code == 200
    assert (await gateway.client.post("/v1/proofs/jobs", json=body, headers=alice)).status_code == 202
    assert (await gateway.client.get("/v1/proofs/jobs/b1", headers=alice)).json()["result"]["results"][0]["reward"] == 1
    assert (await gateway.client.get("/v1/proofs/jobs/b1", headers=bob)).json()["result"]["results"][0]["reward"] == 0


@pytest.mark.parametrize("path", ["/v1/proofs/score", "/v1/trajectories/score", "/compat/slime"])
async def test_without_a_valid_key_nothing_is_read(place: Place, path: str) -> None:
    gateway = await place.gateway(keys=f"alice:{hashlib.sha256(b'k').hexdigest()}")
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        answer = await gateway.client.post(path, content=b"not json", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert (await gateway.client.get("/healthz")).status_code == 200


async def test_a_client_that_hangs_up_cancels_waiting_and_running_checks(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    gateway = await place.http()
    names = [f"t{i}" for i in range(400)]
    request = asyncio.create_task(gateway.score(candidates(*names)))
    await until(lambda: len(worker.held) >= 128)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    await until(lambda: not gateway.gateway.batches.running, 2)
    stats = await worker.queue.stats()
    assert (stats.depth, stats.running) == (0, 0)
    await until(lambda: not worker.held, 1)


async def test_a_batch_lives_while_one_of_its_waiters_does(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    gateway = await place.http()
    first = asyncio.create_task(gateway.score(candidates("t"), batch_id="b1"))
    await until(lambda: worker.held)
    second = asyncio.create_task(gateway.score(candidates("t"), batch_id="b1"))
    await until(lambda: any(batch.waiters == 2 for batch in gateway.gateway.batches.running))
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await until(lambda: all(batch.waiters == 1 for batch in gateway.gateway.batches.running))
    await worker.finish_held(valid(worker.checked[0]))
    assert (await second).json()["results"][0]["verdict"] == "valid"


async def test_an_id_can_be_used_again_after_its_client_hung_up_or_was_refused(place: Place) -> None:
    gateway = await place.http()
    assert (await gateway.score(candidates("t"), batch_id="b1")).status_code == 503
    worker = await place.worker(judge=lambda task: None)
    request = asyncio.create_task(gateway.score(candidates("t"), batch_id="b1"))
    await until(lambda: worker.held)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    worker.judge = valid
    answer = await gateway.score(candidates("t"), batch_id="b1")
    assert (answer.status_code, answer.json()["results"][0]["verdict"]) == (200, "valid")


async def test_two_gateways_share_ids(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    one, two = await place.gateway(), await place.gateway()
    first = asyncio.create_task(one.score(candidates("t"), batch_id="b1"))
    await until(lambda: worker.held)
    second = asyncio.create_task(two.score(candidates("t"), batch_id="b1"))
    conflict = await two.score(candidates("u"), batch_id="b1")
    assert conflict.status_code == 409
    await worker.finish_held(valid(worker.checked[0]))
    assert (await first).content == (await second).content
    assert len(worker.checked) == 1


async def test_a_request_that_waits_for_a_batch_elsewhere_runs_it_when_it_comes_to_nothing_there(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    one, two = await place.gateway(), await place.gateway()
    first = asyncio.create_task(one.score(candidates("t"), batch_id="b1"))
    await until(lambda: worker.held)
    second = asyncio.create_task(two.score(candidates("t"), batch_id="b1"))
    await asyncio.sleep(0.3)
    worker.judge = valid
    await one.gateway.drain(0.0)
    assert (await first).json()["code"] == "shutting_down"
    assert (await second).json()["results"][0]["verdict"] == "valid"


async def test_an_answer_with_faults_of_ours_is_not_repeated(place: Place) -> None:
    broken = True

    def judge(task: CheckTask) -> LeanOutcome:
        if broken and "second" in task.code:
            return LeanOutcome(status=LeanStatus.CRASHED, reason=Reason.INFRASTRUCTURE, detail="its engines were lost")
        return valid(task)

    await place.worker(judge=judge)
    gateway = await place.gateway()
    body = candidates("first", "second")
    first = await gateway.score(body, batch_id="b1")
    assert [result["reason"] for result in first.json()["results"]] == ["ok", "infrastructure"]
    broken = False
    again = await gateway.score(body, batch_id="b1")
    assert [result["reason"] for result in again.json()["results"]] == ["ok", "ok"]
    assert (await gateway.score(body, batch_id="b1")).content == again.content
