"""What Lean names itself does not change a statement: matchers, proofs inside of terms, the order of universes.

Lean uses a matcher or an auxiliary proof again wherever it needs the same, under the name of whatever needed it first.
So a lemma in front of the target renames what the target's type mentions.
"""

from __future__ import annotations

import pytest

from lean_worker.engines.embedded.engine import EmbeddedEngine
from services.contracts.lean import CheckTask
from services.contracts.outcomes import Reason, Verdict
from services.proofs.verdict import judge

pytestmark = [pytest.mark.lean, pytest.mark.asyncio(loop_scope="module")]

MATCH = "(n : Nat) : (match n with | 0 => 0 | k+1 => k) ≤ n"
LEMMA = f"theorem l {MATCH} := by split <;> omega\n"
IF_LET = "(if let some x := o then x else 0)"
MOD = "(Nat.mod_lt _ (by decide)) (by decide : 5 < 6)"
BOOLS = "(a b : Bool) : (match a, b with"
PAIR = "(p : Nat × Nat) : (let (a, b) := p; a + b) = p.1 + p.2"
FUNCTION = "(fun | 0 => 1 | n+1 => n : Nat → Nat)"
COLOURS = "inductive C | a | b\n"
IS_A = "def isA : C → Bool | .a => true | .b => false\n"
ARROW = "{β : Type v} {α : Type u} (f : α → β) : f = f"

HONEST = {
    "the statement of a lemma": ("", f"{LEMMA}theorem t {MATCH} := l n", f"theorem t {MATCH}"),
    "the value of a definition": (
        "",
        f"def f (n : Nat) : Nat := match n with | 0 => 0 | k+1 => k\ntheorem t {MATCH} := by split <;> omega",
        f"theorem t {MATCH}",
    ),
    "a pair": ("", f"theorem l {PAIR} := rfl\ntheorem t {PAIR} := l p", f"theorem t {PAIR}"),
    "a function": ("", f"def g := {FUNCTION}\ntheorem t : {FUNCTION} 0 = 1 := rfl", f"theorem t : {FUNCTION} 0 = 1"),
    "if let": (
        "",
        f"def f (o : Option Nat) := {IF_LET}\ntheorem t (o : Option Nat) : 0 ≤ {IF_LET} := Nat.zero_le _",
        f"theorem t (o : Option Nat) : 0 ≤ {IF_LET}",
    ),
    "within the header": (
        COLOURS + IS_A,
        f"{COLOURS}def isB : C → Bool | .a => false | .b => true\n{IS_A}theorem t (x : C) : isA x = isA x := rfl",
        "theorem t (x : C) : isA x = isA x",
    ),
    "another proof in a definition": (
        "def h (n : Nat) : Fin 6 := ⟨n % 5, by omega⟩",
        f"def h (n : Nat) : Fin 6 := ⟨n % 5, Nat.lt_trans {MOD}⟩\ntheorem t (n : Nat) : h n = h n := rfl",
        "theorem t (n : Nat) : h n = h n",
    ),
    "universes declared in another order": ("", f"universe u v\ntheorem t {ARROW} := rfl", f"theorem t {ARROW}"),
    "universes written in another order": ("", f"theorem t.{{u, v}} {ARROW} := rfl", f"theorem t {ARROW}"),
    "universes without names": (
        "",
        "theorem t {β : Type _} {α : Type _} (f : α → β) : f = f := rfl",
        f"theorem t {ARROW}",
    ),
}

DISHONEST = {
    "a matcher with other values": (
        "",
        "theorem t (n : Nat) : (match n with | 0 => 0 | k+1 => k) ≤ n := by split <;> omega",
        "theorem t (n : Nat) : (match n with | 0 => 0 | k+1 => k+2) ≤ n",
    ),
    "a matcher in another order": (
        "",
        f"theorem t {BOOLS} | true, _ => 0 | _, _ => 1) = if a then 0 else 1 := by cases a <;> rfl",
        f"theorem t {BOOLS} | _, true => 0 | _, _ => 1) = if a then 0 else 1",
    ),
    "a definition that is named as if Lean had made it": (
        "def f.match_1 (n : Nat) : Prop := n = 1",
        "def f.match_1 (n : Nat) : Prop := n = n\ntheorem t (n : Nat) : f.match_1 n := rfl",
        "theorem t (n : Nat) : f.match_1 n",
    ),
    "a helper that it mentions": (
        "def p (n : Nat) : Prop := n = 1\ndef _q (n : Nat) : Prop := p n",
        "def p (n : Nat) : Prop := n = n\ndef _q (n : Nat) : Prop := p n\ntheorem t (n : Nat) : _q n := rfl",
        "theorem t (n : Nat) : _q n",
    ),
    "one universe for two": (
        "",
        "theorem t.{u, v} {α : Type u} {β : Type u} (γ : Type v) (f : α → β) : f = f := rfl",
        "theorem t.{u, v} {α : Type u} {β : Type v} (γ : Type v) (f : α → β) : f = f",
    ),
}


async def outcome(engine: EmbeddedEngine, header: str, code: str, statement: str) -> tuple[Verdict, Reason, str | None]:
    task = CheckTask(code=code, header=header, statement=statement, timeout_s=60)
    judged = judge(task, await engine.check(task), repeated=True)
    return judged.verdict, judged.reason, judged.detail


@pytest.mark.parametrize(("header", "code", "statement"), HONEST.values(), ids=HONEST)
async def test_what_lean_names_itself_changes_no_statement(
    engine: EmbeddedEngine, header: str, code: str, statement: str
) -> None:
    assert (await outcome(engine, header, code, statement))[:2] == (Verdict.VALID, Reason.OK)


@pytest.mark.parametrize(("header", "code", "statement"), DISHONEST.values(), ids=DISHONEST)
async def test_another_meaning_is_another_statement(
    engine: EmbeddedEngine, header: str, code: str, statement: str
) -> None:
    verdict, reason, detail = await outcome(engine, header, code, statement)
    assert (verdict, reason) == (Verdict.INVALID, Reason.STATEMENT_MISMATCH), detail
