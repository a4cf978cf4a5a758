"""Hybrid batches when the evaluator, Lean or the queue fails: what goes on, and what the caller is told."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from services.queue import Completion
from tests.reward_gateway.place import Place, candidates, told, until, valid
from tests.reward_gateway.scripted_evaluator import evaluator


async def test_killed_mid_batch_it_leaves_what_it_said_and_lean_goes_on(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    scripted = await evaluator(place.stack, pause_s=0.3)
    gateway = await place.http(evaluator_urls=scripted.url)
    request = asyncio.create_task(gateway.score(candidates(*"abcd"), cutoff={"deadline_s": 4}))
    await until(lambda: len(worker.held) == 4 and scripted.requests)
    await asyncio.sleep(0.45)
    await scripted.kill()
    await asyncio.sleep(0.3)
    assert not request.done(), "without all predictions it goes on with Lean"
    predicted = {code for batch in gateway.gateway.batches.running for code in batch.state.predictions}
    assert 1 <= len(predicted) < 4
    await worker.finish_held(valid(worker.checked[0]))
    answer = (await request).json()
    assert {r["source"] for r in answer["results"]} == {"lean"}
    assert answer["degraded"] == ["evaluator_unavailable"]


async def test_dead_before_the_batch_lean_decides_until_the_deadline(place: Place) -> None:
    await place.worker()
    scripted = await evaluator(place.stack)
    gateway = await place.http(evaluator_urls=scripted.url)
    await scripted.kill()
    answer = (await gateway.score(candidates("a", "slow_b"), cutoff={"deadline_s": 1})).json()
    assert answer["cutoff"]["reason"] == "deadline"
    assert answer["degraded"] == ["evaluator_unavailable"]
    assert told(answer)["c0"][1] == "lean"
    assert told(answer)["c1"] == ("unknown", "fallback", "not_decided", "cancelled", None)


@pytest.mark.parametrize("fault", [{"cut_after": 2}, {"status": 500}])
async def test_programs_of_a_broken_stream_go_to_another_evaluator_once(place: Place, fault: dict[str, Any]) -> None:
    worker = await place.worker(judge=lambda task: None)
    broken, good = await evaluator(place.stack, **fault), await evaluator(place.stack)
    gateway = await place.http(evaluator_urls=f"{broken.url}, {good.url}")
    names = [f"n{i}" for i in range(10)]
    answer = (await gateway.score(candidates(*names))).json()
    assert answer["cutoff"]["reason"] == "evaluator_done"
    assert {r["source"] for r in answer["results"]} == {"cascade"}
    assert answer["degraded"] == []
    assert len(broken.requests) == 1
    assert len(good.requests) == 2
    assert len(broken.programs) == 5, "the batch is shared out"
    await until(lambda: not worker.held, 2)


async def test_the_only_evaluator_is_tried_once_more(place: Place) -> None:
    await place.worker(judge=lambda task: None)
    scripted = await evaluator(place.stack, cut_after=2)
    gateway = await place.http(evaluator_urls=scripted.url)
    answer = (await gateway.score(candidates(*"abcde"), cutoff={"deadline_s": 1.5})).json()
    assert len(scripted.requests) == 2
    assert len(scripted.requests[1]["programs"]) == 3
    assert [r["source"] for r in answer["results"]].count("cascade") == 4
    assert answer["degraded"] == ["evaluator_unavailable"]
    assert answer["cutoff"]["reason"] == "deadline", "one program is left to Lean, which never answers"


async def test_lines_that_cannot_be_read_or_were_not_asked_for_are_left_out(place: Place) -> None:
    await place.worker(judge=lambda task: None)
    noise = (
        b"not json",
        b'{"id":"0"}',
        b'{"id":"77","verdict":"valid","reason":"ok"}',
        b'{"id":"0","verdict":"valid","reason":"ok","gate":7}',
        b'{"id":"0","verdict":"valid","reason":"ok","feedback":"invalid"}',
        b'{"id":"0","verdict":"invalid","reason":"infrastructure"}',
        b"\xff\xfe",
        b"[]",
    )
    scripted = await evaluator(place.stack, noise=noise)
    gateway = await place.http(evaluator_urls=scripted.url)
    answer = (await gateway.score(candidates("eno_a", "b"))).json()
    assert told(answer)["c0"] == ("invalid", "cascade", "gate_rejected", "cancelled", 0.0)
    assert told(answer)["c1"] == ("valid", "cascade", "ok", "cancelled", 1.0)


async def test_a_program_that_it_fails_on_is_left_to_lean(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    scripted = await evaluator(place.stack)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    request = asyncio.create_task(gateway.score(candidates("efault_a", "b")))
    await until(lambda: len(worker.held) == 2)
    await asyncio.sleep(0.3)
    assert not request.done()
    failed = next(token for token, claim in worker.held.items() if b"efault_a" in claim.payload)
    claim = worker.held.pop(failed)
    await worker.queue.complete([Completion(claim, valid(worker.checked[0]).model_dump_json().encode())])
    answer = (await request).json()
    assert answer["cutoff"]["reason"] == "evaluator_done"
    assert [r["source"] for r in answer["results"]] == ["lean", "cascade"]
    assert answer["degraded"] == ["evaluator_unavailable"]


async def test_too_much_in_flight_is_waited_for(place: Place) -> None:
    await place.worker(judge=lambda task: None)
    scripted = await evaluator(place.stack, status=429)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    request = asyncio.create_task(gateway.score(candidates("a")))
    await until(lambda: scripted.requests)
    scripted.status = 200
    answer = (await request).json()
    assert answer["results"][0]["source"] == "cascade"
    assert answer["degraded"] == []


# Faults of Lean


async def test_without_lean_the_cascade_decides_if_the_caller_allows_it(place: Place) -> None:
    scripted = await evaluator(place.stack)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    refused = await gateway.score(candidates("a"))
    assert (refused.status_code, refused.json()["code"]) == (503, "lean_unavailable")
    assert [missing["component"] for missing in refused.json()["missing"]] == ["lean"]
    answer = (await gateway.score(candidates("a", "eno_b"), allow=["evaluator_only"])).json()
    assert answer["degraded"] == ["lean_unavailable"]
    assert told(answer) == {
        "c0": ("valid", "cascade", "ok", "unavailable", 1.0),
        "c1": ("invalid", "cascade", "gate_rejected", "unavailable", 0.0),
    }
    whole = (await gateway.score(candidates("a"), allow=["evaluator_only"], cutoff={"policy": "all"})).json()
    assert whole["results"][0]["source"] == "cascade"


async def test_without_the_queue_too(place: Place) -> None:
    scripted = await evaluator(place.stack)
    place.url = "unix:///nowhere/redis.sock"
    gateway = await place.gateway(evaluator_urls=scripted.url)
    assert (await gateway.score(candidates("a"))).json()["code"] == "queue_unavailable"
    answer = await gateway.score(candidates("a"), allow=["evaluator_only"])
    assert answer.json()["results"][0]["source"] == "cascade"
    assert (await gateway.score(candidates("a"), mode="evaluator")).status_code == 200


async def test_both_down_is_a_503_that_names_both_at_once(place: Place) -> None:
    scripted = await evaluator(place.stack, ready=False)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    started = time.monotonic()
    refused = await gateway.score(candidates("a"), allow=["evaluator_only"], cutoff={"deadline_s": 60})
    assert refused.status_code == 503
    assert {missing["component"] for missing in refused.json()["missing"]} == {"lean", "evaluator"}
    assert time.monotonic() - started < 3
    ready = await gateway.client.get("/readyz")
    assert ready.status_code == 503
    assert ready.json()["evaluator"] == {"configured": 1, "ready": 0, "models": ready.json()["evaluator"]["models"]}


async def test_lean_that_goes_away_mid_batch_leaves_unfinished_checks_to_the_cascade(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    scripted = await evaluator(place.stack, waits=True)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    request = asyncio.create_task(gateway.score(candidates("a")))
    await until(lambda: worker.held)
    await worker.stop()
    await gateway.gateway.desk.look()
    scripted.gate.set()
    answer = (await request).json()
    assert told(answer)["c0"] == ("valid", "cascade", "ok", "unavailable", 1.0)
    assert answer["degraded"] == ["lean_unavailable"]
