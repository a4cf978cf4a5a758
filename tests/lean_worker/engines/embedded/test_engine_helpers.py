"""Helper definitions: an honest program may define what it likes, and no definition makes a wrong proof right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lean_worker.engines.embedded.engine import EmbeddedEngine
from services.contracts.lean import CheckTask, LeanOutcome
from services.contracts.outcomes import Profile, Reason, Verdict
from services.proofs.precheck import precheck
from services.proofs.verdict import judge

pytestmark = [pytest.mark.lean, pytest.mark.asyncio(loop_scope="module")]

TABLES = Path(__file__).with_name("helpers")


def programs(table: str) -> list[object]:
    """`(code)` of each program of a table, its name as the test's id."""
    parts = re.split(r"^--- (.*)\n", (TABLES / table).read_text(encoding="utf-8"), flags=re.M)[1:]
    return [pytest.param(code, id=name) for name, code in zip(parts[::2], parts[1::2], strict=True)]


async def judged(engine: EmbeddedEngine, task: CheckTask) -> LeanOutcome:
    return judge(task, await engine.check(task), repeated=True)


@pytest.mark.parametrize("code", programs("honest.lean"))
async def test_an_honest_helper_is_no_fault(engine: EmbeddedEngine, code: str) -> None:
    assert precheck(code, "", Profile.STRICT) is None
    outcome = await judged(engine, CheckTask(code=code))
    assert outcome.verdict is Verdict.VALID, outcome.detail


@pytest.mark.parametrize("code", programs("dishonest.lean"))
async def test_a_helper_makes_no_wrong_proof_right(engine: EmbeddedEngine, code: str) -> None:
    """The engine alone sees to it: the precheck is not asked."""
    outcome = await judged(engine, CheckTask(code=code))
    assert outcome.verdict is Verdict.INVALID, outcome.detail


MAP = "def f (a : List Nat) := a.map (· + 1)\n"
GOAL = "theorem t : f [1] = [2]"

HEADERS = {
    "def": MAP,
    "deriving": f"inductive C | r | g\n  deriving DecidableEq, Repr, BEq, Hashable, Inhabited, Ord\n{MAP}",
    "namespace": f"namespace H\n{MAP}end H\nopen H\n",
    "section": f"section\nvariable (k : Nat)\ndef g (a : List Nat) := a.map (· + k)\nend\n{MAP}",
    "private": f"private {MAP}",
    "noncomputable section": f"noncomputable section\n{MAP}",
    "mutual": f"mutual\ndef ev : Nat → Bool | 0 => true | n+1 => od n\ndef od : Nat → Bool | 0 => false | n+1 => ev n\n"
    f"end\n{MAP}",
    "instance": f"{MAP}instance : Add (List Nat) := ⟨List.zipWith (· + ·)⟩\n",
    "macro": f'macro "close" : tactic => `(tactic| rfl)\n{MAP}',
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
async def test_a_header_may_have_helpers_too(engine: EmbeddedEngine, header: str) -> None:
    right = await judged(engine, CheckTask(code=f"{header}{GOAL} := rfl", header=header, statement=GOAL))
    assert right.verdict is Verdict.VALID, right.detail
    assert right.statement_match


async def test_a_helper_of_the_header_must_keep_its_meaning(engine: EmbeddedEngine) -> None:
    changed = MAP.replace("+ 1", "+ 1 + 0")
    outcome = await judged(engine, CheckTask(code=f"{changed}{GOAL} := rfl", header=MAP, statement=GOAL))
    assert outcome.reason is Reason.STATEMENT_MISMATCH


async def test_a_wrong_helper_is_still_an_error(engine: EmbeddedEngine) -> None:
    code = "def f (a : List Nat) : Nat := a.map (· + 1)\ntheorem t : 1 = 1 := rfl"
    outcome = await judged(engine, CheckTask(code=code, statement="theorem t : 1 = 1"))
    assert outcome.reason is Reason.COMPILE_ERROR
