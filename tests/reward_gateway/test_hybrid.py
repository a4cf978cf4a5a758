"""Hybrid batches over real HTTP: a scripted evaluator beside a worker that answers at once or never."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from services.contracts.lean import LeanOutcome, WorkerInfo
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.contracts.proofs import ScoreResponse
from services.queue.jobs import STEPS
from tests.reward_gateway.place import IDENTITY, Place, candidates, theorem, told, until
from tests.reward_gateway.scripted_evaluator import evaluator


async def test_at_the_cutoff_every_candidate_says_who_decided_it(place: Place) -> None:
    worker = await place.worker()
    scripted = await evaluator(place.stack, waits=True)
    gateway = await place.http(evaluator_urls=scripted.url)
    batch = [
        {"id": "proved", "code": theorem("eno_good")},
        {"id": "refuted", "code": theorem("wrong_1")},
        {"id": "rejected", "code": "theorem t : 1 = 2 := by sorry"},
        {"id": "believed", "code": theorem("slow_1")},
        {"id": "disbelieved", "code": theorem("slow_eno_1")},
        {"id": "late", "code": theorem("timeout_1")},
        {"id": "twin", "code": theorem("slow_1")},
    ]
    request = asyncio.create_task(gateway.score(batch, include=["trace"]))
    await until(lambda: len(worker.held) == 2 and scripted.requests)
    (running,) = gateway.gateway.batches.running
    await until(lambda: len(running.state.answers) == 3)  # the others are on their way, on a loaded machine for long
    scripted.gate.set()
    answer = await request
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["cutoff"]["reason"] == "evaluator_done"
    assert told(body) == {
        "proved": ("valid", "lean", "ok", "ok", 1.0),
        "refuted": ("invalid", "lean", "compile_error", "ok", 0.0),
        "rejected": ("invalid", "precheck", "forbidden_construct", "skipped", 0.0),
        "believed": ("valid", "cascade", "ok", "cancelled", 1.0),
        "disbelieved": ("invalid", "cascade", "gate_rejected", "cancelled", 0.0),
        "late": ("valid", "cascade", "ok", "timeout", 1.0),
        "twin": ("valid", "cascade", "ok", "cancelled", 1.0),
    }
    results = {r.id: r for r in ScoreResponse.model_validate(body).results}
    believed, proved = results["believed"].evaluator, results["proved"].evaluator
    assert believed is not None
    assert (believed.gate, believed.feedback, believed.trace) == (0.9, Verdict.VALID, "-- annotated")
    assert believed.model == "scripted"
    assert proved is not None, "what the evaluator said is told although Lean decided"
    assert results["disbelieved"].detail == "gate 0.100 is below 0.5"
    assert results["rejected"].evaluator is None
    assert body["degraded"] == []
    assert body["stats"]["predicted"] == 6
    assert len(scripted.programs) == 5, "rejected ones are not sent, identical ones once"
    await until(lambda: len(worker.cancelled) == 2, 2)
    assert (await worker.queue.stats()).running == 0


async def test_everything_decided_by_lean_ends_the_batch_and_aborts_the_evaluator(place: Place) -> None:
    await place.worker()
    scripted = await evaluator(place.stack, waits=True)
    gateway = await place.http(evaluator_urls=scripted.url)
    request = asyncio.create_task(gateway.score(candidates("a", "wrong_b"), cutoff={"policy": "all"}))
    answer = (await request).json()
    assert answer["cutoff"]["reason"] == "decided"
    assert {r["source"] for r in answer["results"]} == {"lean"}
    scripted.gate.set()
    await until(lambda: scripted.aborted == len(scripted.requests), 3)


async def test_at_the_deadline_what_nobody_decided_is_unknown(place: Place) -> None:
    await place.worker()
    scripted = await evaluator(place.stack, waits=True)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    started = time.monotonic()
    answer = (await gateway.score(candidates("a", "slow_b"), cutoff={"deadline_s": 0.6})).json()
    assert time.monotonic() - started < 0.6 + 0.25
    assert answer["cutoff"] == {"reason": "deadline", "at_s": 0.6}
    assert told(answer)["c1"] == ("unknown", "fallback", "not_decided", "cancelled", None)
    assert answer["degraded"] == ["evaluator_unavailable"], "it was asked, and nothing came"


async def test_a_timeout_waits_for_its_prediction_under_the_policy_all(place: Place) -> None:
    worker = await place.worker()
    scripted = await evaluator(place.stack, waits=True)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    request = asyncio.create_task(gateway.score(candidates("a", "timeout_b"), cutoff={"policy": "all"}))
    await until(lambda: len(worker.checked) == 2 and scripted.requests)
    await asyncio.sleep(0.1)
    assert not request.done()
    scripted.gate.set()
    answer = (await request).json()
    assert answer["cutoff"]["reason"] == "all"
    assert told(answer)["c1"] == ("valid", "cascade", "ok", "timeout", 1.0)


async def test_a_check_that_killed_its_workers_is_not_left_to_the_cascade(place: Place) -> None:
    crashed = LeanOutcome(status=LeanStatus.CRASHED, verdict=Verdict.UNKNOWN, reason=Reason.INFRASTRUCTURE)
    exhausted = LeanOutcome(
        status=LeanStatus.OK, verdict=Verdict.INVALID, reason=Reason.RESOURCE_EXHAUSTED, identity=IDENTITY
    )
    await place.worker(judge=lambda task: crashed if "crash_" in task.code else exhausted)
    scripted = await evaluator(place.stack)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    answer = (await gateway.score(candidates("crash_a", "b"), cutoff={"policy": "all"})).json()
    assert told(answer)["c0"] == ("unknown", "fallback", "infrastructure", "crashed", None)
    assert told(answer)["c1"] == ("invalid", "lean", "resource_exhausted", "ok", 0.0)


async def test_a_prediction_of_valid_needs_the_statement_in_the_program(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    scripted = await evaluator(place.stack, waits=True)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    hard = "theorem hard (n : Nat) : n + 0 = n"
    batch = [
        {"id": "honest", "code": f"{hard} := by simp", "statement": hard},
        {"id": "easy", "code": "theorem hard : True := trivial", "statement": hard},
    ]
    request = asyncio.create_task(gateway.score(batch))
    await until(lambda: len(worker.held) == 2)
    scripted.gate.set()
    answer = (await request).json()
    assert told(answer)["honest"] == ("valid", "cascade", "ok", "cancelled", 1.0)
    assert told(answer)["easy"] == ("unknown", "fallback", "not_decided", "cancelled", None)
    assert "word for word" in answer["results"][1]["detail"]


async def test_the_evaluator_alone(place: Place) -> None:
    scripted = await evaluator(place.stack)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    answer = (await gateway.score(candidates("a", "eno_b"), mode="evaluator")).json()
    assert answer["cutoff"]["reason"] == "evaluator_done"
    assert told(answer) == {
        "c0": ("valid", "cascade", "ok", "skipped", 1.0),
        "c1": ("invalid", "cascade", "gate_rejected", "skipped", 0.0),
    }
    await scripted.kill()
    refused = await gateway.score(candidates("a", "eno_b"), mode="evaluator")
    assert (refused.status_code, refused.json()["code"]) == (503, "evaluator_unavailable")
    assert refused.json()["missing"][0]["component"] == "evaluator"


# Readiness


async def test_readiness_warns_of_a_missing_evaluator_and_of_one_for_another_lean(place: Place) -> None:
    await place.worker()
    scripted = await evaluator(place.stack, toolchain="4.9.0")
    gateway = await place.gateway(evaluator_urls=scripted.url)
    ready = (await gateway.client.get("/readyz")).json()
    assert ready["status"] == "ready"
    assert ready["evaluator"]["ready"] == 1
    assert any("trained for Lean 4.9.0" in warning for warning in ready["warnings"])
    assert "lean_reward_evaluator_toolchain_mismatch 1.0" in (await gateway.client.get("/metrics")).text
    scripted.toolchain = IDENTITY.toolchain
    await gateway.gateway.evaluator.look()
    ready = (await gateway.client.get("/readyz")).json()
    assert ready["warnings"] == []
    await scripted.kill()
    await gateway.gateway.evaluator.look()
    ready = (await gateway.client.get("/readyz")).json()
    assert ready["status"] == "ready", "hybrid batches go on with Lean"
    assert any("no evaluator can predict" in warning for warning in ready["warnings"])


# Priorities


async def test_gate_scores_move_uncertain_candidates_forward_inside_the_callers_band(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    await worker.stop()  # it announces itself again below, and claims nothing: everything waits
    info = WorkerInfo(worker="w", identity=IDENTITY, engines=1, ready=1)
    await worker.queue.announce("w", info.model_dump_json().encode(), 60)

    def unsure(code: str) -> dict[str, Any]:
        sure = {"verdict": "valid", "reason": "ok", "gate": 0.999, "feedback": "valid"}
        return {"verdict": "valid", "reason": "ok", "gate": 0.55} if "unsure" in code else sure

    scripted = await evaluator(place.stack, waits=True, judge=unsure, news=True)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    names = [f"sure_{i}" for i in range(20)] + ["unsure"]
    request = asyncio.create_task(gateway.score(candidates(*names), priority=3, cutoff={"deadline_s": 6}))
    await until(lambda: scripted.requests)

    async def first() -> str:
        claim = (await worker.queue.claim("probe", 1, 0.1))[0]
        assert 3 * STEPS <= claim.priority < 4 * STEPS
        await worker.queue.release([claim])
        return claim.payload.decode()

    for _ in range(100):
        if "unsure" in await first():
            break
        await asyncio.sleep(0.05)
    else:
        raise AssertionError("the uncertain candidate was not moved to the front")
    scripted.gate.set()
    assert (await request).status_code == 200


async def test_an_accepted_job_in_hybrid_mode_is_taken_over_with_its_predictions_asked_again(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    scripted = await evaluator(place.stack, waits=True)
    first = await place.gateway(evaluator_urls=scripted.url)
    body = {"candidates": candidates("a", "eno_b"), "batch_id": "b1"}
    assert (await first.client.post("/v1/proofs/jobs", json=body)).status_code == 202
    await until(lambda: len(worker.held) == 2)
    await first.stop()
    scripted.gate.set()
    second = await place.gateway(evaluator_urls=scripted.url)
    for _ in range(100):
        job = (await second.client.get("/v1/proofs/jobs/b1")).json()
        if job["state"] != "running":
            break
        await asyncio.sleep(0.1)
    assert [r["source"] for r in job["result"]["results"]] == ["cascade", "cascade"]


@pytest.mark.parametrize("size", [1024])
async def test_the_answer_leaves_soon_after_the_cutoff(place: Place, size: int) -> None:
    worker = await place.worker()
    scripted = await evaluator(place.stack, waits=True)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    names = [f"slow_{i}" if i % 2 else f"wrong_{i}" for i in range(size)]
    request = asyncio.create_task(gateway.score(candidates(*names)))
    await until(lambda: len(worker.checked) == size and scripted.requests, 30)
    scripted.gate.set()
    answer = (await request).json()
    late_s = answer["stats"]["elapsed_s"] - answer["cutoff"]["at_s"]
    assert answer["cutoff"]["reason"] == "evaluator_done"
    assert answer["stats"]["lean_share"] == 0.5
    assert late_s < 1.0, f"{late_s:.3f} s after the cutoff"  # bench/merge.py measures it; this machine may be loaded
