from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from lean_text import SOUP, soup

from services.contracts.lean import Position
from services.contracts.outcomes import Profile, Reason
from services.proofs import policy
from services.proofs.header import attach_header
from services.proofs.precheck import precheck

GOOD = "theorem t : True := trivial\n"
CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "lean_cases.sample.json"


def reason(code: str | None, header: str = "", profile: Profile = Profile.STRICT) -> Reason | None:
    found = precheck(code, header, profile)
    return found.reason if found else None


def acceptance_cases() -> list[Any]:
    if not CASES.is_file():
        skip = pytest.mark.skip(reason="the acceptance cases live beside the checkout, and it stands alone")
        return [pytest.param({}, marks=skip)]
    return [pytest.param(case, id=case["id"]) for case in json.loads(CASES.read_text(encoding="utf-8"))["cases"]]


@pytest.mark.parametrize("case", acceptance_cases())
def test_acceptance_case(case: dict[str, Any]) -> None:
    code = case["code"] if "code" in case else "".join(text * times for text, times in case["code_parts"])
    found = precheck(code, case["required_header"], Profile.STRICT)
    if case["expected_verdict"] == "accept" and case["strictness"] != "either":
        assert found is None
    elif case["stage"] == ["preflight"]:
        assert found is not None
        assert found.reason.value == {"import_mismatch": "header_mismatch"}.get(case["reason"], case["reason"])
    elif case["expected_verdict"] == "reject" and "preflight" not in case["stage"]:
        assert found is None, "Lean must decide this case"


@given(soup, soup)
def test_any_text_gets_an_answer(code: str, header: str) -> None:
    for profile in Profile:
        found = precheck(code, header, profile)
        if found and found.position:
            lines = code.split("\n")
            assert found.position.line <= len(lines)
            assert found.position.column <= len(lines[found.position.line - 1])


@given(soup)
def test_strict_forbids_all_that_paper_forbids(code: str) -> None:
    if precheck(code, "", Profile.PAPER):
        assert precheck(code, "", Profile.STRICT)


@pytest.mark.parametrize(
    "unit",
    [
        *SOUP[:16],
        "simp (config := ",
        "simp (disch := ",
        "simp +a ",
        "(add tactic",
        "a.sorry",
        ".sorry.1",
        "@[",
        "attribute [",
        "set_option a ",
        's!"{',
        "import A\n",
        "`a.",
    ],
)
def test_hostile_text_of_the_largest_size_is_quick(unit: str) -> None:
    """CPU seconds with a wide margin: about 1 s at most here, hours for a quadratic scan."""
    code = GOOD + unit * ((policy.MAX_CHARACTERS - len(GOOD)) // len(unit))
    start = time.process_time()
    precheck(code, "", Profile.STRICT)
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    "unit",
    [
        "/-",
        '"',
        "a.sorry",
        ".sorry.1",
        "@[",
        "set_option a ",
        "attribute [tactic",
        "macro ",
        's!"{x',
        "simp (a := 1)",
        "simp (disch := ",
        "tactic| add_aesop_rules ",
    ],
)
def test_work_grows_in_proportion_to_the_text(unit: str, count_calls: Callable[[Callable[[], object]], int]) -> None:
    small, large = (
        count_calls(lambda size=size: precheck(GOOD + unit * (size // len(unit)), "", Profile.STRICT))
        for size in (4_000, 8_000)
    )
    assert large <= 2 * small + 200


def test_no_code_and_no_theorem_differ() -> None:
    assert reason(None) is Reason.NO_CODE
    assert reason("") is Reason.NO_THEOREM
    assert reason(" \n\n") is Reason.NO_THEOREM


def test_exactly_the_longest_program_is_allowed() -> None:
    longest = GOOD + "-" * (policy.MAX_CHARACTERS - len(GOOD))
    assert len(longest) == 262_144
    assert reason(longest) is None
    assert reason(longest + "-") is Reason.TOO_LONG
    assert reason(GOOD + "ℕ" * (policy.MAX_CHARACTERS - len(GOOD))) is None, "characters are counted, not bytes"


@pytest.mark.parametrize(
    ("code", "position"),
    [
        ("theorem t : 1 = 2 := by\n  sorry", (2, 2)),
        ("theorem t : 1 = 2 := by\r\n  sorry", (2, 2)),
        ("theorem 𝒜ℕ : 1 = 2 := sorry", (1, 22)),
        ("/- a\nb -/ theorem t : 1 = 2 := admit", (2, 26)),
        (GOOD + "axiom a : False\n#eval 1", (2, 0)),
        (GOOD + "@[simp, csimp] def f := 1", (2, 8)),
        (GOOD + "@[local tactic x] def f := 1", (2, 8)),
        (GOOD + "\x00", (2, 0)),
        (GOOD + "-- \ud800", (2, 3)),
        (GOOD + "import Lean", (2, 0)),
        ("/- note -/\nimport Lean\n" + GOOD, (2, 0)),
    ],
)
def test_a_rejection_says_where(code: str, position: tuple[int, int]) -> None:
    found = precheck(code, "", Profile.STRICT)
    assert found is not None
    assert found.position == Position(line=position[0], column=position[1])


@pytest.mark.parametrize(
    "text",
    [
        "1sorry", "0x1sorry", "(f 1.sorry)", "x ..sorry", "!sorry", "₁sorry", "λsorry", "ésorry", "жsorry", "sorry.1",
        "sorry)", "⟨sorry⟩", "id<|sorry", "(sorry:)", "sorry/- -/", "sorry--", '"a"sorry"b"', "'a'sorry",
        "h.sorry sorry", "`(sorry)",
        "$sorry", "@sorry", "·sorry", "<;>sorry", "#sorry", "s!\"{sorry}\"", "s!\"{\"}\"} {sorry}\"",
    ],
)  # fmt: skip
def test_the_word_is_found_in(text: str) -> None:
    assert reason(f"theorem t : 1 = 2 := {text}", profile=Profile.PAPER) is Reason.FORBIDDEN_CONSTRUCT


@pytest.mark.parametrize(
    "text",
    [
        "sorryAx", "sorry'", "sorry!", "sorry?", "sorry_", "sorry₁", "_sorry", "h.sorry", "h.1.sorry", "(h).sorry",
        "«sorry»", "«a sorry b»", "`sorry", "`a.sorry", "sorry.foo", "Foo.sorry.bar", "αsorry", "sorryα", "'sorry",
        "h'.sorry", "a.«b».sorry", "so​rry", "ѕorry", "ｓorry", "(.sorry)", "a.sorry.sorry", "a.sorry.1.sorry",
    ],
)  # fmt: skip
def test_the_word_is_not_found_in(text: str) -> None:
    # `'sorry` is glued to the quote: no character literal, an error for Lean.
    expected = Reason.FORBIDDEN_CONSTRUCT if text == "'sorry" else None
    assert reason(f"theorem t : 1 = 2 := {text}", profile=Profile.PAPER) is expected


@pytest.mark.parametrize(
    "code",
    [
        'notation "x-" => True\ntheorem t : x-- := trivial\naxiom a : False',
        'notation "x-" => id\ntheorem t : False := x-- sorry\n',
        "theorem t : False := do let x <-- sorry\n",
        'local notation "q\'" => id\ntheorem t : False := q\'"\'" sorry -- "\n',
        "theorem t : False := f 1'\"' sorry -- \"\n",
        'theorem t : False := f 1r"\\" sorry -- "\n',
        'syntax "say" interpolatedStr(term) : term\ntheorem t : say "{sorry}" = 1 := rfl',
        'theorem t : True := by throwError "{(sorry : Nat)}"',
    ],
)
def test_a_word_hidden_by_an_ambiguous_text_is_found(code: str) -> None:
    assert reason(code, profile=Profile.PAPER) is Reason.FORBIDDEN_CONSTRUCT


@pytest.mark.parametrize(
    "code",
    [
        GOOD + "set_option maxHeartbeats 800001",
        GOOD + "set_option maxHeartbeats 0",
        GOOD + "set_option maxHeartbeats 00",
        GOOD + "set_option maxHeartbeats 0x0",
        GOOD + "set_option maxHeartbeats 1_000_000",
        GOOD + "set_option maxHeartbeats 0b11111111111111111111111",
        GOOD + "set_option maxHeartbeats 0o77777777",
        GOOD + "set_option maxHeartbeats " + "9" * 10_000,
        GOOD + "set_option maxHeartbeats x",
        GOOD + "set_option\n/- a -/ «maxHeartbeats»\n-- b\n0",
        "theorem t : True := by set_option maxHeartbeats 0 in trivial",
        "theorem t : 1 = 1 := 1set_option debug.skipKernelTC true",
        GOOD + "set_option $x true",
        GOOD + "attribute\n[\ntactic x] f",
        GOOD + "@[simp (config := [1]), init] def f := 1",
        GOOD + "@[scoped builtin_term_elab x] def f := 1",
        GOOD + 'macro "x" : command => do return evil',
        GOOD + 'macro "x" : command => evil `(skip)',
        GOOD + 'macro "x" : command => `(skip) >>= evil',
        GOOD + 'macro "x" : command => `(def $(mkIdent evil) := 1)',
        GOOD + 'macro "x" : command',
        GOOD + 'macro "x" : command => `(skip',
        GOOD + 'local macro (priority := high) "x" : term => pure evil\nmacro "y" : term => `(1)',
        GOOD + "macro_rules | `(tactic| x) => evil",
        GOOD + "macro_rules | `(tactic| x) => `(tactic| y) | stx => evil stx",
        GOOD + "macro_rules | `(tactic| x) => `(tactic| y) |> evil",
        GOOD + 'binder_predicate x " > " y:term => evil',
        GOOD + "#eval! 1",
        GOOD + "#guard_msgs(drop all)in",
        GOOD + "open Lean in elab(priority := high) x",
        GOOD + "def x := 1#eval x",
        GOOD + "@[to_additive (attr := command_elab x)] def f := 1",
        GOOD + "@[to_additive (attr := simp, csimp)] def f := 1",
        GOOD + "@[cpass] def f := 1",
        GOOD + "@[doc_role] def f := 1",
        GOOD + "@[aesop norm tactic] def f := 1",
        GOOD + "add_aesop_rules safe tactic f\n",
        GOOD + "example : p := by aesop (add norm 3 forward (g x), safe (tactic f))",
        GOOD + "set_library_suggestions f",
        GOOD + "set_option doc.verso true\n/-- ```lean\n#eval f\n``` -/ example : True := trivial",
        GOOD + 'set_option sat.solver "/bin/sh"',
    ],
)
def test_strict_rejects(code: str) -> None:
    assert reason(code) is Reason.FORBIDDEN_CONSTRUCT
    assert reason(code, profile=Profile.PAPER) is None


@pytest.mark.parametrize(
    "code",
    [
        GOOD + "set_option maxHeartbeats 800_000",
        GOOD + "set_option maxHeartbeats 0xC3500",
        GOOD + "set_option maxRecDepth 4000\nset_option trace.Meta.synthInstance true",
        GOOD + "open Lean Elab Meta",
        GOOD + "@[elab_as_elim, inline, macro_inline, reducible] def f := 1",
        GOOD + "theorem u (init : Nat) (x : Nat × Nat) : x = (x.1, init) ∨ True := by simp [init, tactic]",
        GOOD + "macro_rules | `(tactic| x) => `(tactic| simp)",
        GOOD
        + "macro_rules (kind := x)\n  | `(tactic| x $t) | `(tactic| y) => `(tactic| (simp; exact f $t))\n"
        + "  | `(a) => `(b)\n#check 1",
        'local macro "x" y:term : tactic => -- a )\n  `(tactic| first | exact $y | (simp [$y:term]; omega))\n' + GOOD,
        'macro "x" : term => `(fun a => a)\n@[simp] ' + GOOD,
        'binder_predicate x " > " y:term => `($x > $y)\n' + GOOD,
        GOOD + 'syntax "x" : tactic\nnotation3 "y" => 1\ndeclare_syntax_cat z',
        GOOD + "#check t\n#print axioms t\n#reduce 1",
        "nonrec theorem t : True := trivial",
        "set_option maxHeartbeats 400000 in\n@[simp]\nprotected theorem «a b» : True := trivial",
        "mutual\ntheorem a : True := trivial\ntheorem b : True := trivial\nend",
        "lemma t : True := trivial",
        "theorem «sorry» («axiom» : True) : True := «axiom»",
        "/- /- sorry -/ axiom -/\n" + GOOD,
        "/-\n/- sorry -/\naxiom -/\n" + GOOD,
        "/-a/- sorry -/ axiom -/\n" + GOOD,
        "theorem t : True :=-- sorry\n  trivial",
        "theorem t : True → True := fun _ =>/- sorry -/ trivial",
        "theorem t : x.evaluate = h.elab := by native_decide",
    ],
)
def test_strict_accepts(code: str) -> None:
    assert reason(code) is None


@pytest.mark.parametrize(
    "name",
    ["lcProof", "lcUnreachable", "lcAny", "unsafeCast", "unsafeIO", "unsafeBaseIO", "unsafeEIO", "ptrAddrUnsafe",
     "ptrEq", "dbgTrace", "dbgTraceVal", "dbgSleep", "dbgStackTrace", "dbgTraceIfShared"],
)  # fmt: skip
@pytest.mark.parametrize("use", ["{}", "@{}", "«{}»", "_root_.{}", "x.{}", "A.«{}» y", "(A.{}.b)", "1{}", "id<|{}"])
def test_no_name_hides_what_breaks_out_of_types(name: str, use: str) -> None:
    assert reason(f"{GOOD}def f := {use.format(name)}") is Reason.FORBIDDEN_CONSTRUCT
    assert reason(f"{GOOD}open A renaming {name} → g") is Reason.FORBIDDEN_CONSTRUCT


@pytest.mark.parametrize(
    "text",
    [
        "lcProof'",
        "my_unsafeCast",
        "-- lcProof",
        '"dbgTrace"',
        "lcm_proof",
        "unsafely",
        "h.dbg",
        "ptr",
        "lc",
        "aunsafeCast",
    ],
)
def test_innocent_names_that_look_alike(text: str) -> None:
    assert reason(f"{GOOD}def f := {text}") is None


CONFIGURED = [
    "simp (config := (cast lcProof' f : Nat → Lean.Meta.Simp.Config) 0)",
    "simp (config := f 1)",
    "simp («config» := f 1)",
    "simp (maxSteps := f 1)",
    "simp +arith -zeta (maxSteps := f 1) only [a]",
    "simp (disch := assumption) (zeta := true) (maxSteps := f 1)",
    "simp /- " + "a" * 500 + " -/ (maxSteps := f 1)",
    "simp (disch := simp (maxSteps := f 1))",
    "simp (config := { maxSteps := f 1 })",
    "simp (config := by exact {})",
    "simp (config := fun x => x)",
    "simp (config := (x, y).1)",
    "omega (config := match x with | _ => {})",
    "decide (config := f {})",
    "grind (splits := f 1)",
    "rw (config := f _) [h]",
    "conv => lhs; dsimp! (maxSteps := f 1)",
    "first | skip | simp? (maxSteps := f 1)",
    "aesop (simp_config := f 1)",
    "aesop (options := f 1)",
    "linarith (config := { discharger := do ring1 })",
    "simp (config := «a b» c)",
    "simp (config := {",
]


@pytest.mark.parametrize("tactic", CONFIGURED)
def test_a_configuration_that_computes_is_rejected(tactic: str) -> None:
    code = f"theorem t : p := by\n  {tactic}"
    found = precheck(code, "", Profile.STRICT)
    assert found is not None
    assert found.reason is Reason.FORBIDDEN_CONSTRUCT
    assert found.position is not None
    assert code.split("\n")[1][found.position.column] == "("
    assert reason(code, profile=Profile.PAPER) is None


@pytest.mark.parametrize(
    "program",
    [
        "def Lean.Meta.Simp.Config.mine : Lean.Meta.Simp.Config := f\ntheorem t : p := by simp (config := .mine)",
        "abbrev mine := f\ntheorem t : p := by simp (config := mine)",
        "open Evil renaming f → neutralConfig\ntheorem t : p := by simp (config := neutralConfig)",
        'notation "neutral" => f\ntheorem t : p := by simp (config := neutral)',
        'macro "x" n:num : tactic => `(tactic| simp (maxSteps := $n))\ntheorem t : p := by x',
        'macro "x" n:ident : tactic => `(tactic| simp ($n:ident := $n))\ntheorem t : p := by x',
        'syntax "x" Lean.Parser.Tactic.optConfig : tactic\ntheorem t : p := by x (maxSteps := f 1)',
    ],
)
def test_a_configuration_of_the_programs_own_is_rejected(program: str) -> None:
    assert reason(program) is Reason.FORBIDDEN_CONSTRUCT


@pytest.mark.parametrize(
    "tactic",
    [
        "simp (config := { contextual := true, maxSteps := 100_000 }) [foo]",
        "simp +arith (maxSteps := 5) only [a]",
        "simp (config := Lean.Meta.Simp.neutralConfig)",
        "simp (config := { neutralConfig with decide := true })",
        "simp (config := ({} : Lean.Meta.Simp.Config))",
        "congr! (config := .unfoldSameFun) 2",
        "rw (occs := .pos [1, 2]) [h]",
        "simp (disch := positivity) [h (a := b + 1)]",
        "linear_combination (norm := ring_nf) (exp := 2) h",
        "aesop (config := { terminal := true }) (simp_config := { arith := true }) (rule_sets := [A, -B])",
        "aesop (add safe forward foo, norm simp bar)",
        "linarith (config := { oracle := .fourierMotzkin })",
        "exact foo (n := f x) (decide := h) (by simp)",
        "apply foo (h := fun x => x)",
        "rw [foo (a := b + 1)]",
        "simp at h; exact f (maxSteps := g x)",
    ],
)
def test_a_literal_configuration_and_named_arguments_pass(tactic: str) -> None:
    assert reason(f"theorem t : p := by\n  {tactic}") is None


@pytest.mark.parametrize(
    "code",
    [
        "example : theorem' := 1",
        "def theorem_t := 1",
        "instance t : Inhabited Nat := ⟨1⟩",
        '#check "theorem t"',
        "theorem",
    ],
)
def test_no_theorem_is_declared_by(code: str) -> None:
    assert reason(code) is Reason.NO_THEOREM


def test_the_callers_header_may_hold_what_a_candidate_may_not() -> None:
    header = "import Mathlib\nset_option maxHeartbeats 0\nopen Nat"
    assert reason(f"{header}\n{GOOD}", header) is None
    assert reason(f"{header}\n{GOOD}set_option maxHeartbeats 0", header) is Reason.FORBIDDEN_CONSTRUCT
    assert reason(f"import Mathlib\n{GOOD}set_option maxHeartbeats 0", header) is Reason.FORBIDDEN_CONSTRUCT
    assert reason(f"{header}x sorry\n{GOOD}", header) is Reason.FORBIDDEN_CONSTRUCT, "another text begins likewise"


def test_an_added_header_moves_positions_back() -> None:
    header = "import Lean\nopen Nat\n"
    program = attach_header("theorem t : 1 = 2 := by\n  sorry", header)
    found = precheck(program.text, header, Profile.STRICT)
    assert found is not None
    assert found.position is not None
    assert program.position_in_candidate(found.position) == Position(line=2, column=2)
