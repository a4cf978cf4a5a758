"""The acceptance cases, through the precheck, the engine and the judge."""

from __future__ import annotations

from typing import Any

import pytest

from lean_worker.engines.embedded.engine import EmbeddedEngine
from services.contracts.lean import CheckTask
from services.contracts.outcomes import Profile, Reason, Verdict
from services.proofs.precheck import precheck
from services.proofs.statement import read_statement
from services.proofs.verdict import judge
from tests.conftest import load_cases

pytestmark = [pytest.mark.lean, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

CASES = load_cases("lean_cases.sample.json")
ONLY_TEXTUAL = {"preflight"}


def code_of(case: dict[str, Any]) -> str:
    return str(case["code"]) if "code" in case else "".join(text * count for text, count in case["code_parts"])


def task_of(case: dict[str, Any]) -> CheckTask:
    statement = read_statement(case["expected_theorem"]["statement"]).text
    return CheckTask(code=code_of(case), header=case["required_header"], statement=statement, timeout_s=20)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
async def test_acceptance_case(engine: EmbeddedEngine, case: dict[str, Any]) -> None:
    task = task_of(case)
    rejection = precheck(task.code, task.header, Profile.STRICT)
    verdict = Verdict.INVALID if rejection else judge(task, await engine.check(task), repeated=True).verdict
    if case["strictness"] != "either":
        assert verdict is (Verdict.VALID if case["expected_verdict"] == "accept" else Verdict.INVALID), case["title"]


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case["expected_verdict"] == "reject" and set(case["stage"]) != ONLY_TEXTUAL],
    ids=lambda case: case["id"],
)
async def test_the_engine_alone_accepts_no_cheat(engine: EmbeddedEngine, case: dict[str, Any]) -> None:
    """Even if the precheck missed it: only rules that are textual by nature may need the precheck."""
    task = task_of(case)
    outcome = judge(task, await engine.check(task), repeated=True)
    assert outcome.verdict is not Verdict.VALID or case["strictness"] == "either", case["title"]
    assert outcome.reason is not Reason.INFRASTRUCTURE
