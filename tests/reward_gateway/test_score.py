"""`POST /v1/proofs/score` in mode `lean`: verdicts, order, provenance, joining, the cutoff."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from services.contracts.lean import CheckTask, LeanOutcome, Message, Position, Severity
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.contracts.proofs import ScoreResponse
from services.queue import Completion
from services.queue.jobs import STEPS
from tests.reward_gateway.place import IDENTITY, Place, candidates, theorem, until


def results(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {result["id"]: result for result in body["results"]}


async def test_every_candidate_gets_its_verdict_in_the_order_of_the_request(place: Place) -> None:
    await place.worker()
    gateway = await place.http()
    batch = [
        {"id": "z", "group": "g1", "code": theorem("good")},
        {"id": "a", "group": "g1", "code": theorem("wrong_1")},
        {"id": "m", "code": "theorem t : 1 = 2 := by sorry"},
        {"id": "b", "response": "I give up."},
        {"id": "r", "response": f"Here:\n```lean\n{theorem('fenced')}\n```"},
    ]
    answer = await gateway.score(batch)
    assert answer.status_code == 200, answer.text
    body = ScoreResponse.model_validate_json(answer.content)
    assert [r.id for r in body.results] == ["z", "a", "m", "b", "r"]
    told = [(r.verdict.value, r.source.value, r.reason.value, r.lean.status.value, r.reward) for r in body.results]
    assert told == [
        ("valid", "lean", "ok", "ok", 1.0),
        ("invalid", "lean", "compile_error", "ok", 0.0),
        ("invalid", "precheck", "forbidden_construct", "skipped", 0.0),
        ("invalid", "precheck", "no_code", "skipped", 0.0),
        ("valid", "lean", "ok", "ok", 1.0),
    ]
    assert body.results[0].group == "g1"
    assert body.stats.prechecked == 2
    assert body.stats.lean_share == pytest.approx(0.6)
    assert body.cutoff.reason.value == "decided"
    assert body.batch_id


async def test_identical_programs_run_once_and_later_come_from_the_cache(place: Place) -> None:
    worker = await place.worker()
    gateway = await place.gateway()
    first = (await gateway.score(candidates("same", "same", "same", "other"))).json()
    assert first["stats"]["duplicates"] == 2
    assert len(worker.checked) == 2
    second = (await gateway.score(candidates("same", "other"))).json()
    assert second["stats"]["cached"] == 2
    assert len(worker.checked) == 2
    assert {r["source"] for r in second["results"]} == {"lean"}


async def test_verdicts_are_not_reused_across_header_statement_profile_or_messages(place: Place) -> None:
    worker = await place.worker()
    gateway = await place.gateway()
    code = theorem("t")
    await gateway.score([{"id": "a", "code": code}])
    await gateway.score([{"id": "a", "code": code, "statement": "theorem t : 1 + 1 = 2"}])
    await gateway.score([{"id": "a", "code": code, "header": "open Nat"}])
    await gateway.score([{"id": "a", "code": code}], profile="paper")
    await gateway.score([{"id": "a", "code": code}], include=["messages"])
    assert len(worker.checked) == 5


async def test_no_cache_while_workers_run_different_leans(place: Place) -> None:
    worker = await place.worker()
    gateway = await place.gateway()
    await gateway.score(candidates("a"))
    info = '{"worker":"w2","identity":{"engine":"repl","toolchain":"x","environment":"y"},"engines":1,"ready":1}'
    await worker.queue.announce("w2", info.encode(), 60)
    await gateway.gateway.desk.look()
    assert (await gateway.score(candidates("a"))).json()["stats"]["cached"] == 0


async def test_the_deadline_cuts_cancels_and_leaves_unknowns_without_a_number(place: Place) -> None:
    worker = await place.worker()
    gateway = await place.gateway()
    started = time.monotonic()
    answer = (await gateway.score(candidates("good", "slow_1", "slow_2"), cutoff={"deadline_s": 0.5})).json()
    assert 0.5 <= time.monotonic() - started < 0.75
    assert answer["cutoff"] == {"reason": "deadline", "at_s": 0.5}
    told = results(answer)
    assert told["c0"]["verdict"] == "valid"
    for late in ("c1", "c2"):
        assert told[late]["verdict"] == "unknown"
        assert told[late]["reward"] is None
        assert told[late]["source"] == "fallback"
        assert told[late]["reason"] == "not_decided"
        assert told[late]["lean"]["status"] == "cancelled"
    await asyncio.sleep(0.3)
    assert len(worker.cancelled) == 2
    assert (await worker.queue.stats()).running == 0


async def test_the_callers_reward_map_is_used(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway()
    answer = await gateway.score(
        candidates("good", "wrong_1", "timeout_1"), rewards={"valid": 2, "invalid": -1.5, "unknown": -0.25}
    )
    assert [r["reward"] for r in answer.json()["results"]] == [2.0, -1.5, -0.25]
    assert answer.json()["cutoff"]["reason"] == "all"


async def test_a_timeout_is_unknown_and_never_cached(place: Place) -> None:
    worker = await place.worker()
    gateway = await place.gateway()
    for _ in range(2):
        told = (await gateway.score(candidates("timeout_1"))).json()["results"][0]
        assert (told["verdict"], told["reason"], told["lean"]["status"]) == ("unknown", "lean_timeout", "timeout")
    assert len(worker.checked) == 2


async def test_an_unreadable_outcome_is_our_fault(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    gateway = await place.gateway()
    request = asyncio.create_task(gateway.score(candidates("t")))
    await until(lambda: worker.held)
    await worker.queue.complete([Completion(claim, b"not json") for claim in worker.held.values()])
    told = (await request).json()["results"][0]
    assert (told["verdict"], told["reason"], told["lean"]["status"]) == ("unknown", "infrastructure", "crashed")


async def test_a_statement_that_cannot_be_read_is_nobodys_verdict_and_costs_no_neighbour(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway()
    batch = [
        {"id": "a", "code": theorem("t"), "statement": "def x := 1"},
        {"id": "b", "code": theorem("t"), "statement": "theorem t : 1 + 1 = 2 := by sorry"},
    ]
    told = results((await gateway.score(batch)).json())
    assert (told["a"]["verdict"], told["a"]["reason"], told["a"]["reward"]) == ("unknown", "statement_invalid", None)
    assert told["b"]["verdict"] == "valid"


async def test_a_prepended_header_moves_positions_back(place: Place) -> None:
    def judge(task: CheckTask) -> LeanOutcome:
        place_ = Position(line=task.code.count("\n") + 1, column=3)
        return LeanOutcome(
            status=LeanStatus.OK,
            verdict=Verdict.INVALID,
            reason=Reason.COMPILE_ERROR,
            position=place_,
            messages=(Message(severity=Severity.ERROR, data="no", pos=place_, end_pos=place_),),
            identity=IDENTITY,
        )

    worker = await place.worker(judge)
    gateway = await place.gateway()
    batch = [{"id": "a", "code": theorem("t"), "header": "import Std\nopen Nat"}]
    refused = (await gateway.score(batch)).json()["results"][0]
    assert (refused["source"], refused["reason"]) == ("precheck", "header_mismatch")
    told = (await gateway.score(batch, prepend_header=True, include=["messages"])).json()["results"][0]
    assert worker.checked[0].code.startswith("import Std\nopen Nat\ntheorem")
    assert told["position"] == {"line": 1, "column": 3}
    assert told["lean"]["messages"][0]["pos"] == {"line": 1, "column": 3}


async def test_what_is_wrong_with_a_header_is_the_callers(place: Place) -> None:
    worker = await place.worker()
    gateway = await place.gateway()
    batch = [
        {"id": "placeholder", "code": theorem("a"), "header": "def x : Nat := sorry"},
        {"id": "axiom", "code": "axiom h : False\n" + theorem("b"), "header": "axiom h : False"},
        {"id": "evaluation", "code": theorem("c"), "header": "#eval 1"},
        {"id": "carried", "code": "-- as asked\n#eval  1\n" + theorem("d"), "header": "#eval 1"},
    ]
    results = (await gateway.score(batch, prepend_header=True)).json()["results"]
    for result, word in zip(results[:2], ("sorry", "axiom"), strict=True):
        assert (result["verdict"], result["reason"]) == ("unknown", "statement_invalid")
        assert result["detail"] == f"header: it uses `{word}`"
    assert [result["verdict"] for result in results[2:]] == ["valid", "valid"]
    assert sorted(task.code.count("#eval") for task in worker.checked) == [1, 1]


async def test_no_worker_is_a_503_before_the_trainer_has_waited(place: Place) -> None:
    gateway = await place.gateway()
    answer = await gateway.score(candidates("t"))
    assert answer.status_code == 503
    problem = answer.json()
    assert problem["code"] == "lean_unavailable"
    assert problem["missing"][0]["component"] == "lean"
    assert int(answer.headers["retry-after"]) == problem["retry_after_s"]
    await place.worker(ready=0)
    assert (await gateway.score(candidates("t"))).json()["code"] == "lean_unavailable"


async def test_what_needs_no_lean_is_answered_without_workers(place: Place) -> None:
    gateway = await place.gateway()
    answer = await gateway.score([{"id": "a", "response": "nothing"}])
    assert answer.json()["results"][0]["reason"] == "no_code"


async def test_priority_time_limit_and_profile_reach_the_worker(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    gateway = await place.gateway()
    request = asyncio.create_task(
        gateway.score(candidates("t"), priority=7, lean_timeout_s=3.5, profile="paper", cutoff={"deadline_s": 0.5})
    )
    await until(lambda: worker.held)
    claim = next(iter(worker.held.values()))
    assert claim.priority // STEPS == 7
    assert claim.timeout_s == 3.5
    assert worker.checked[0].profile.value == "paper"
    assert worker.checked[0].timeout_s == 3.5
    await request


@pytest.mark.parametrize("mode", ["hybrid", "evaluator"])
async def test_modes_that_need_an_evaluator_are_refused_without_one(place: Place, mode: str) -> None:
    gateway = await place.gateway()
    answer = await gateway.score(candidates("t"), mode=mode)
    assert (answer.status_code, answer.json()["code"]) == (422, "evaluator_not_configured")


async def test_a_large_batch_keeps_its_order_and_the_loop_stays_free(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway()
    names = [f"wrong_{i}" if i % 3 else f"good_{i}" for i in range(3000)]
    longest, stop = 0.0, False

    async def watch() -> None:
        nonlocal longest
        while not stop:
            before = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - before)
            await asyncio.sleep(0.001)

    watcher = asyncio.create_task(watch())
    answer = (await gateway.score(candidates(*names))).json()
    stop = True
    await watcher
    assert [r["id"] for r in answer["results"]] == [f"c{i}" for i in range(3000)]
    assert [r["verdict"] == "invalid" for r in answer["results"]] == [bool(i % 3) for i in range(3000)]
    assert longest < 0.5, f"the loop stood still for {longest:.3f} s"
