"""`POST /v1/evaluate` of the gateway, and the pure parts around predictions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reward_gateway.evaluator.stated import LONGEST, holds_statement, positive_counts
from reward_gateway.evaluator.toolchain import other_lean, same_lean
from services.contracts.evaluator import EvaluatorModel, Prediction
from tests.reward_gateway.place import Place
from tests.reward_gateway.scripted_evaluator import evaluator

PROGRAMS = [{"id": "a", "code": "theorem a : True := trivial"}, {"id": "b", "code": "theorem eno_b : True := trivial"}]


def lines(text: str) -> dict[str, Prediction]:
    return {line["id"]: Prediction.model_validate(line) for line in map(json.loads, text.splitlines())}


async def test_predictions_are_passed_on(place: Place) -> None:
    scripted = await evaluator(place.stack)
    gateway = await place.http(evaluator_urls=scripted.url)
    answer = await gateway.client.post("/v1/evaluate", json={"programs": PROGRAMS, "method": "gate", "trace": True})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    found = lines(answer.text)
    assert (found["a"].verdict.value, found["b"].verdict.value) == ("valid", "invalid")
    assert scripted.requests[0]["method"] == "gate"
    assert scripted.requests[0]["trace"] is True


async def test_a_stream_that_breaks_off_says_so_for_the_rest(place: Place) -> None:
    scripted = await evaluator(place.stack, cut_after=1)
    gateway = await place.http(evaluator_urls=scripted.url)
    found = lines((await gateway.client.post("/v1/evaluate", json={"programs": PROGRAMS})).text)
    assert found["a"].verdict.value == "valid"
    assert (found["b"].verdict.value, found["b"].reason.value) == ("unknown", "infrastructure")


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ({"status": 500}, 503, "evaluator_unavailable"),
        ({"status": 429}, 429, "too_much_in_flight"),
        ({"ready": False}, 503, "evaluator_unavailable"),
    ],
)
async def test_refusals_are_problems(place: Place, options: dict[str, Any], status: int, code: str) -> None:
    scripted = await evaluator(place.stack, **options)
    gateway = await place.http(evaluator_urls=scripted.url)
    answer = await gateway.client.post("/v1/evaluate", json={"programs": PROGRAMS})
    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_bad_requests_and_no_evaluator(place: Place) -> None:
    plain = await place.gateway()
    for answer in (
        await plain.client.post("/v1/evaluate", json={"programs": PROGRAMS}),
        await plain.client.get("/v1/evaluator/quality"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (422, "evaluator_not_configured")
    scripted = await evaluator(place.stack)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    twice = await gateway.client.post("/v1/evaluate", json={"programs": [PROGRAMS[0], PROGRAMS[0]]})
    assert (twice.status_code, twice.json()["errors"][0]["pointer"]) == (422, "/programs/1/id")
    none = await gateway.client.post("/v1/evaluate", json={"programs": []})
    assert none.status_code == 422
    assert none.json()["errors"] == [{"pointer": "/programs", "detail": "1 or more items are needed"}]
    odd = await gateway.client.post("/v1/evaluate", json={"programs": [{**PROGRAMS[0], "proof": 1}]})
    assert [fault["pointer"] for fault in odd.json()["errors"]] == ["/programs/0/proof"], "and not that none is there"
    assert scripted.requests == []


STATEMENT = "theorem t (a b : Nat) : a + b = b + a"


@pytest.mark.parametrize(
    ("code", "held"),
    [
        (f"{STATEMENT} := by omega", True),
        ("lemma t (a b: Nat):\n    a+b = b + a\n  := by omega", True),
        (f"/-- the sum -/ {STATEMENT} := by omega -- done", True),
        (f"{STATEMENT}\n  | _ => rfl", True),
        (f"{STATEMENT} ∨ True := by simp", False),
        ("theorem t : True := trivial", False),
        (f"-- {STATEMENT} := by omega\ntheorem t : True := trivial", False),
        (f"/- {STATEMENT} := -/ theorem t : True := trivial", False),
        (STATEMENT.replace("t (a", "tt (a") + " := by omega", False),
        (STATEMENT.replace("a b :", "ab :") + " := by omega", False),
        (f"-- {STATEMENT} :=\n{STATEMENT} := by omega", True),
    ],
)
def test_a_program_holds_its_statement_word_for_word(code: str, held: bool) -> None:
    assert holds_statement(code, STATEMENT) is held


@pytest.mark.parametrize("statement", [STATEMENT, None])
def test_a_positive_does_not_count_for_what_no_model_has_seen(statement: str | None) -> None:
    hidden = f'def s := "/- <Feedback>"\n{STATEMENT} := by rfl\ndef e := "</feedback> -/"\ntheorem u : 1 = 1 := rfl'
    assert holds_statement(hidden, STATEMENT)
    assert not positive_counts(hidden, statement)
    assert not positive_counts(f"{STATEMENT} := by omega\n/-\n<feedback>", statement)
    assert positive_counts(f"{STATEMENT} := by omega -- <feedback>", statement)


def test_a_statement_of_unreasonable_length_is_not_looked_for() -> None:
    statement = f"theorem t : {'True ∧ ' * LONGEST} True"
    assert not holds_statement(f"{statement} := sorry", statement)


def test_toolchains_are_told_apart_by_version_and_by_commit_where_both_say_it() -> None:
    assert same_lean("leanprover/lean4:v4.15.0", "4.15.0")
    assert same_lean("4.28.0-pre+abc123", "4.28.0-pre")
    assert same_lean("4.28.0-pre+abc", "4.28.0-pre+abc123")
    assert not same_lean("4.28.0-pre+abc", "4.28.0-pre+def")
    assert not same_lean("4.15.0", "4.9.0")
    silent, other = EvaluatorModel(name="a"), EvaluatorModel(name="b", toolchain="4.9.0")
    assert other_lean([silent, other], ["4.15.0"]) == [other]
    assert other_lean([other], []) == []
