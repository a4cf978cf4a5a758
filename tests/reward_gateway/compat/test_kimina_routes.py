"""The HTTP contract of the Kimina Lean Server, and its defects not reproduced."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest

from services.contracts.lean import CheckTask, LeanOutcome, Message, Position, Severity, TacticState
from services.contracts.outcomes import LeanStatus, Profile, Reason, Verdict
from tests.reward_gateway.place import IDENTITY, Place, until

AT = Position(line=2, column=4)


def raw(task: CheckTask) -> LeanOutcome | None:
    """What a worker would say of a program, by a word in it."""
    told: dict[str, Any] = {"status": LeanStatus.OK, "verdict": Verdict.INVALID, "identity": IDENTITY, "worker": "w"}
    message = Message(severity=Severity.ERROR, data="unknown", pos=AT, end_pos=AT)
    if "slow" in task.code:
        return None
    if "timeout" in task.code:
        return LeanOutcome(status=LeanStatus.TIMEOUT, reason=Reason.LEAN_TIMEOUT, worker="w")
    if "crash" in task.code:
        return LeanOutcome(status=LeanStatus.CRASHED, reason=Reason.INFRASTRUCTURE, detail="it vanished")
    if "memory" in task.code:
        return LeanOutcome(**told, reason=Reason.RESOURCE_EXHAUSTED, detail="ran out of memory twice: 1 GB")
    if "import No" in task.code:
        return LeanOutcome(**told, reason=Reason.STATEMENT_INVALID, detail="header: unknown module No")
    if "sorry" in task.code:
        return LeanOutcome(**told, reason=Reason.PLACEHOLDER)
    if "error" in task.code:
        return LeanOutcome(**told, reason=Reason.COMPILE_ERROR, messages=(message,))
    tactic = TacticState(tactic="rfl", pos=AT, end_pos=AT, goals_before=("⊢ a = a",), goals_after=())
    told["verdict"] = Verdict.VALID
    return LeanOutcome(**told, reason=Reason.OK, elapsed_s=0.25, tactics=(tactic,) if task.tactics else ())


def snippets(*codes: str) -> list[dict[str, str]]:
    return [{"id": f"s{i}", "code": code} for i, code in enumerate(codes)]


async def test_each_snippet_has_its_own_fate_in_order(place: Place) -> None:
    worker = await place.worker(judge=raw)
    gateway = await place.gateway()
    codes = ("#check Nat", "error", "timeout", "crash", "memory", "import No", "sorry", "a\0b")
    answer = await gateway.client.post("/api/check", json={"snippets": snippets(*codes), "timeout": 7})
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert [r["id"] for r in results] == [f"s{i}" for i in range(len(codes))]
    assert all(("error" in r) != ("response" in r) for r in results)
    assert results[0] == {"id": "s0", "time": 0.25, "response": {"env": 0}}
    assert results[1]["response"]["messages"] == [
        {
            "severity": "error",
            "pos": {"line": 2, "column": 4},
            "endPos": {"line": 2, "column": 4},
            "data": "unknown",
        }
    ]
    assert results[2]["error"] == "Lean REPL command timed out in 7.0 seconds"
    assert results[2]["diagnostics"]["repl_uuid"] == "w"
    assert results[3]["error"] == "the server failed on this snippet: it vanished"
    assert "ran out of memory twice" in results[4]["error"]
    assert results[5]["response"] == {"message": "header: unknown module No"}
    assert len(results[6]["response"]["sorries"]) == 1
    assert results[7]["response"]["messages"][0]["pos"] == {"line": 1, "column": 1}
    assert {task.timeout_s for task in worker.checked} == {7.0}
    assert {(task.messages, task.statement, task.profile) for task in worker.checked} == {(True, None, Profile.PAPER)}


async def test_programs_are_run_as_they_are(place: Place) -> None:
    worker = await place.worker(judge=raw)
    gateway = await place.gateway(header="import Mathlib")
    codes = ["#eval 1", "-- a comment\nimport Lean\n#check Nat", "", "axiom a : False"]
    await gateway.client.post("/api/check/", json={"snippets": snippets(*codes)})
    assert sorted(task.code for task in worker.checked) == sorted(codes)
    assert {task.header for task in worker.checked} == {""}


@pytest.mark.parametrize("path", ["/verify", "/verify/", "/one_pass_verify_batch", "/one_pass_verify_batch/"])
async def test_the_older_route_takes_proof_or_code_and_answers_with_the_time(place: Place, path: str) -> None:
    await place.worker(judge=raw)
    gateway = await place.gateway()
    codes = [{"custom_id": 1, "proof": "x"}, {"custom_id": "b", "code": "timeout"}]
    answer = await gateway.client.post(path, json={"codes": codes, "timeout": 3, "infotree_type": None})
    first, second = answer.json()["results"]
    assert first == {"custom_id": "1", "response": {"env": 0, "time": 0.25}}
    assert second["custom_id"] == "b"
    assert "timed out" in second["error"]


async def test_tactics_come_as_an_infotree_where_the_engine_reports_them(place: Place) -> None:
    await place.worker(judge=raw)
    gateway = await place.gateway()
    asked = {"snippets": snippets("x"), "infotree": "original", "debug": True}
    (result,) = (await gateway.client.post("/api/check", json=asked)).json()["results"]
    (tree,) = result["response"]["infotree"]
    assert tree["node"]["goalsBefore"] == ["⊢ a = a"]
    assert result["diagnostics"] == {"repl_uuid": "w", "verdict": "valid", "reason": "ok"}


@pytest.mark.parametrize(
    "sent",
    [
        {"snippets": []},
        {"snippets": [{"id": "a", "code": "x"}, {"id": "a", "code": "y"}]},
        {"snippets": [{"id": "a"}]},
        {"snippets": [{"id": "a", "code": "x"}], "timeout": -1},
        {"snippets": [{"id": "a", "code": "x"}], "infotree": "some"},
    ],
)
async def test_what_does_not_fit_is_422(place: Place, sent: dict[str, Any]) -> None:
    gateway = await place.gateway()
    answer = await gateway.client.post("/api/check", json=sent)
    assert answer.status_code == 422
    assert answer.json()["detail"]


async def test_codes_without_a_program_or_with_one_id_are_422(place: Place) -> None:
    gateway = await place.gateway()
    for codes in ([], [{"custom_id": "a"}], [{"custom_id": 1, "proof": "x"}, {"custom_id": "1", "proof": "y"}]):
        assert (await gateway.client.post("/verify", json={"codes": codes})).status_code == 422


async def test_keys_are_asked_for_as_kimina_does(place: Place) -> None:
    await place.worker(judge=raw)
    gateway = await place.gateway(keys=f"k:{hashlib.sha256(b'secret').hexdigest()}")
    sent = {"snippets": snippets("x")}
    for headers, status in (({}, 401), ({"Authorization": "wrong"}, 401), ({"Authorization": "secret"}, 200)):
        assert (await gateway.client.post("/api/check", json=sent, headers=headers)).status_code == status
    assert (await gateway.client.get("/health")).json() == {"status": "ok"}
    assert (await gateway.client.get("/")).json() == {"status": "ok"}


async def test_both_routes_cancel_when_the_client_hangs_up(place: Place) -> None:
    worker = await place.worker(judge=raw)
    gateway = await place.http()
    for path, sent in (
        ("/api/check", {"snippets": snippets("slow 1")}),
        ("/verify", {"codes": [{"custom_id": "a", "proof": "slow 2"}]}),
    ):
        call = asyncio.create_task(gateway.client.post(path, json=sent))
        await until(lambda: worker.held)
        call.cancel()
        await until(lambda: not worker.held)
        await until(lambda: not gateway.gateway.batches.running)


async def test_no_room_is_waited_for_and_then_429(place: Place) -> None:
    await place.worker(judge=raw)
    gateway = await place.gateway()
    gateway.gateway.batches._admission._max_batches = 0
    app_state = gateway.client._transport.app.state  # type: ignore[attr-defined]
    app_state.compat = app_state.compat.model_copy(update={"kimina_wait_s": 1.0})
    answer = await gateway.client.post("/api/check", json={"snippets": snippets("x")})
    assert answer.status_code == 429
    assert answer.headers["retry-after"]
