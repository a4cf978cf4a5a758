"""What the engine reports about a candidate: from the environment, never from text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from services.contracts.lean import CheckAnswer, CheckStatus, Severity
from services.contracts.outcomes import Profile

Check = Callable[..., Awaitable[CheckAnswer]]

pytestmark = [pytest.mark.lean, pytest.mark.asyncio(loop_scope="module")]

COMM = "theorem t (a b : Nat) : a + b = b + a"


async def test_a_right_proof_has_every_fact(check: Check) -> None:
    answer = await check(f"{COMM} := by omega", COMM)
    assert answer.status is CheckStatus.DONE
    assert answer.messages == ()
    assert not answer.has_placeholder
    assert answer.target is not None
    assert (answer.target.name, answer.target.kind) == ("t", "theorem")
    assert answer.target.statement_match
    assert answer.target.binders_match
    assert answer.target.kernel_accepts
    assert answer.target.axioms.foreign == ()


async def test_a_program_with_errors_is_not_looked_into(check: Check) -> None:
    answer = await check(f"theorem u : 1 = 2 := sorry\n{COMM} := by omega\ntheorem v : 1 = 2 := rfl", COMM)
    assert answer.status is CheckStatus.DONE
    assert Severity.ERROR in {message.severity for message in answer.messages}
    assert answer.target is None
    assert answer.theorems == ()


async def test_axioms_are_classified_against_the_pristine_environment(check: Check) -> None:
    code = (
        "axiom extra : False\n"
        "theorem t (p : Prop) : p ∨ ¬ p := by by_cases h : p <;> simp [h]\n"
        "theorem u : 1 = 2 := extra.elim"
    )
    theorems = {theorem.name: theorem.axioms for theorem in (await check(code)).theorems}
    assert "Classical.choice" in theorems["t"].core
    assert theorems["t"].foreign == theorems["t"].library == ()
    assert theorems["u"].foreign == ("extra",)


async def test_compiled_evaluation_is_a_foreign_axiom(check: Check) -> None:
    answer = await check("theorem t : (List.range 500).foldl (· + ·) 0 = 124750 := by native_decide")
    assert answer.theorems[0].axioms.foreign == ("Lean.ofReduceBool",)
    assert answer.theorems[0].kernel_accepts is None


async def test_a_placeholder_in_another_declaration_shows(check: Check) -> None:
    answer = await check('def leak : String := s!"{(sorry : Nat)}"\ntheorem t : 1 = 1 := rfl', "theorem t : 1 = 1")
    assert answer.has_placeholder
    assert answer.target is not None
    assert answer.target.axioms.foreign == ()


@pytest.mark.parametrize(
    ("declared", "match", "binders", "printed"),
    [
        ("theorem t (a b : Nat) : a + b = b + a", True, True, True),
        ("theorem t {a b : Nat} : a + b = b + a", True, False, False),
        ("theorem t (x b : Nat) : x + b = b + x", True, True, False),
        ("theorem t : ∀ (a b : Nat), a + b = b + a", True, True, True),
        ("theorem t (a b : Nat) : b + a = a + b", False, False, False),
        ("theorem t (a b : Int) : a + b = b + a", False, False, False),
    ],
)
async def test_statements_are_compared_by_their_elaborated_type(
    check: Check, declared: str, match: bool, binders: bool, printed: bool
) -> None:
    target = (await check(f"{declared} := by omega", COMM, profile=Profile.PAPER)).target
    assert target is not None
    assert (target.statement_match, target.binders_match, target.printed_match) == (match, binders, printed)


async def test_printed_signatures_ignore_what_the_candidate_redefines(check: Check) -> None:
    code = 'notation "Truth" => False\ntheorem t : Truth → False := id'
    target = (await check(code, "theorem t : False → False", profile=Profile.PAPER)).target
    assert target is not None
    assert target.statement_match
    assert target.printed_match


@pytest.mark.parametrize(
    "declared",
    [
        "theorem t.{v} (α : Type v) (x : α) : x = x",
        "theorem t (α : Type _) (x : α) : x = x",
        "universe w\ntheorem t (α : Type w) (x : α) : x = x",
    ],
)
async def test_level_parameters_are_compared_by_position(check: Check, declared: str) -> None:
    target = (await check(f"{declared} := rfl", "theorem t.{u} (α : Type u) (x : α) : x = x")).target
    assert target is not None
    assert target.statement_match


async def test_a_lowered_universe_is_another_statement(check: Check) -> None:
    target = (
        await check("theorem t (α : Type) (x : α) : x = x := rfl", "theorem t.{u} (α : Type u) (x : α) : x = x")
    ).target
    assert target is not None
    assert target.statement_match is False


@pytest.mark.parametrize("ending", ["", " :=", " := by", " := by sorry", "\n:= by\n  sorry\n"])
async def test_a_statement_may_end_in_an_empty_proof(check: Check, ending: str) -> None:
    target = (await check(f"{COMM} := by omega", COMM + ending)).target
    assert target is not None
    assert target.statement_match


HEADER = "def dbl (n : Nat) : Nat := n + n\nnamespace A\nvariable (k : Nat)\n"
GOAL = "theorem t : dbl k = k + k"


@pytest.mark.parametrize(
    ("preamble", "match"),
    [
        (HEADER, True),
        ("def dbl (n : Nat) := n + n\nnamespace A\nvariable (k : Nat)\n", True),
        (HEADER.replace("n + n", "n + n + 0"), False),
        (HEADER.replace("def", "abbrev"), True),
        ("namespace A\ndef dbl (n : Nat) : Nat := n + n\nvariable (k : Nat)\n", False),
    ],
)
async def test_helpers_of_the_header_must_mean_the_same(check: Check, preamble: str, match: bool) -> None:
    target = (await check(f"{preamble}{GOAL} := rfl\nend A", GOAL, HEADER)).target
    assert target is not None
    assert target.name == "A.t"
    assert target.statement_match is match
    assert bool(target.kernel_accepts) is match


async def test_an_inductive_helper_counts_with_its_constructors(check: Check) -> None:
    header = "inductive T | l | n (a b : T)\ndef T.size : T → Nat | .l => 1 | .n a b => a.size + b.size\n"
    goal = "theorem t (x : T) : x.size = x.size"
    assert (target := (await check(f"{header}{goal} := rfl", goal, header)).target)
    assert target.statement_match
    assert target.kernel_accepts
    changed = header.replace("| n (a b : T)", "| n (a b : T) | extra").replace("b.size\n", "b.size | .extra => 1\n")
    assert (target := (await check(f"{changed}{goal} := rfl", goal, header)).target)
    assert target.statement_match is False


@pytest.mark.parametrize(
    ("declared", "statement", "found"),
    [
        ("namespace A\ntheorem _root_.t : 1 = 1", "theorem t : 1 = 1", True),
        ("theorem «a b» : 1 = 1", "theorem «a b» : 1 = 1", True),
        ("theorem «A.t» : 1 = 1", "theorem A.t : 1 = 1", False),
        ("private theorem t : 1 = 1", "theorem t : 1 = 1", False),
        ("private theorem t : 1 = 1", "private theorem t : 1 = 1", True),
        ("theorem A.t : 1 = 1", "theorem t : 1 = 1", False),
    ],
)
async def test_the_name_must_be_the_same(check: Check, declared: str, statement: str, found: bool) -> None:
    target = (await check(f"{declared} := rfl", statement)).target
    assert target is not None
    assert target.found is found


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("theorem t : Nat.blah = 1", "Unknown constant `Nat.blah`"),
        ("def t : Nat", "0 theorems"),
        ("theorem t : True := trivial theorem u : True", "2 theorems"),
        ("theorem Nat.add_comm : 1 = 1", "already been declared"),
        ("theorem t : 1 = )", "1:"),
    ],
)
async def test_a_bad_statement_is_the_callers_fault(check: Check, statement: str, error: str) -> None:
    answer = await check("theorem t : 1 = 1 := rfl", statement)
    assert answer.status is CheckStatus.DONE
    assert error in (answer.statement_error or "")
    assert answer.target is None


@pytest.mark.parametrize(
    ("code", "header", "error"),
    [
        ("import Nowhere\ntheorem t : 1 = 1 := rfl", "import Nowhere", "unknown import `Nowhere`"),
        ("import Init.Nowhere\ntheorem t : 1 = 1 := rfl", "import Init.Nowhere", "unknown import `Init.Nowhere`"),
        ("import «..»\ntheorem t : 1 = 1 := rfl", "import «..»", "unknown import"),
        ("import Std\ntheorem t : 1 = 1 := rfl", "", "the program imports Init, Std, its header Init"),
        ("module\ntheorem t : 1 = 1 := rfl", "module", "`module`"),
        ("prelude\ntheorem t : 1 = 1 := rfl", "prelude", "`prelude`"),
        ("theorem t : 1 = 1 := rfl", "def x := (", "1:"),
    ],
)
async def test_a_header_that_cannot_be_opened_is_named(check: Check, code: str, header: str, error: str) -> None:
    answer = await check(code, "theorem t : 1 = 1", header)
    assert answer.status is CheckStatus.DONE
    assert error in (answer.header_error or "")


@pytest.mark.parametrize(
    ("code", "header", "error"),
    [
        ("\ttheorem t : 1 = 1 := rfl", "", "tabs are not allowed"),
        ("import Std\n\ttheorem t : 1 = 1 := rfl", "import Std", "tabs are not allowed"),
        ("\rtheorem t : 1 = 1 := rfl", "", "isolated carriage returns"),
        ("import Std.\ntheorem t : 1 = 1 := rfl", "import Std", "expected no space"),
    ],
)
async def test_an_import_block_that_cannot_be_read_is_the_candidates_fault(
    check: Check, code: str, header: str, error: str
) -> None:
    answer = await check(code, "theorem t : 1 = 1", header)
    assert answer.header_error is None
    assert [message.severity for message in answer.messages] == ["error"]
    assert error in answer.messages[0].data
    assert answer.target is None


async def test_a_tab_of_the_header_is_the_callers_fault(check: Check) -> None:
    answer = await check("theorem t : 1 = 1 := rfl", "theorem t : 1 = 1", "\tdef x := 1")
    assert "tabs are not allowed" in (answer.header_error or "")


async def test_without_a_statement_every_theorem_of_the_text_is_reported(check: Check) -> None:
    code = """
inductive Colour | red | green deriving DecidableEq
structure Point where
  x : Nat
  y : Nat
theorem a : Colour.red ≠ Colour.green := by decide
private theorem b (p : Point) : p = ⟨p.x, p.y⟩ := rfl
def f : Nat → Nat | 0 => 0 | n + 1 => f n + 1
theorem c (n : Nat) : f n = n := by induction n with | zero => rfl | succ n ih => simp [f, ih]
theorem d (n : Nat) : n + 0 = n := go n
where go (m : Nat) : m + 0 = m := rfl
"""
    answer = await check(code)
    assert answer.messages == ()
    names = {theorem.name.split(".")[-1] for theorem in answer.theorems}
    assert names == {"a", "b", "c", "d", "go"}
    assert all(theorem.kernel_accepts for theorem in answer.theorems)


@pytest.mark.parametrize(
    "code",
    [
        "inductive T | n (l : List T)\ntheorem t (x : T) : True := by cases x; trivial",
        "mutual\ninductive A | a (b : B) | z\ninductive B | b (a : A)\nend\ntheorem t : A.z ≠ A.a (B.b A.z) := nofun",
        "def f (n : Nat) : Nat := if n = 0 then 0 else f (n / 2) + 1\ntheorem t : f 0 = 0 := by unfold f; simp",
        "theorem t {α} (r : α → α → Prop) (a b) (h : r a b) : Quot.mk r a = Quot.mk r b := Quot.sound h",
        "theorem t : 123456789123456789123456789 * 3 = 370370367370370367370370367 := by decide",
        'theorem t : "añ".length = 2 := by decide',
        "theorem t (a b c : Nat) (h : a = b) (g : b = c) : a = c := by grind",
        "theorem t : ∀ x : Fin 20, x.val * x.val < 400 := by decide +kernel",
        "theorem t (x : Nat × Nat) : (let y := x.1; y) = x.1 := rfl",
    ],
)
async def test_the_kernel_accepts_honest_constants_of_every_kind(check: Check, code: str) -> None:
    answer = await check(code)
    assert answer.messages == ()
    target = next(theorem for theorem in answer.theorems if theorem.name == "t")
    assert target.kernel_detail is None
    assert target.kernel_accepts


async def test_positions_are_lines_and_code_points(check: Check) -> None:
    line = "theorem t (α : Type) : /- 𝔸 -/ (1 : Nat) = 2 := by decide"
    position = (await check(f"import Init\n-- 𝔸𝔸\n{line}")).messages[0].pos
    assert position is not None
    assert (position.line, position.column) == (3, line.index("decide"))
