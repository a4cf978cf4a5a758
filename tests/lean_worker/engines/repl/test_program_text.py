"""What the native engine reads from a program's text: imports, theorems, whether it can change the language."""

import pytest

from lean_worker.engines.repl.declarations import declared_theorems, statement_name
from lean_worker.engines.repl.plain import is_plain
from lean_worker.engines.repl.program import split_program


@pytest.mark.parametrize(
    ("code", "imports"),
    [
        ("theorem t : True := trivial", ""),
        ("import A\ntheorem t : True := trivial", "import A"),
        (
            "-- a comment before\n/- and /- another -/ -/\nimport A\n-- between\nimport B.C\nopen D",
            "import A import B.C",
        ),
        ("-- import A\ntheorem t : True := trivial", ""),
        ("import A import B\n", "import A import B"),
        ("theorem t : True := trivial\nimport A", ""),
    ],
)
def test_the_import_block_is_split_off(code, imports):
    program = split_program(code)
    assert program.imports == imports
    assert len(program.body) == len(code)
    assert program.body.count("\n") == code.count("\n")
    assert program.body.endswith(code[-5:]) or not program.body.strip()


def test_the_body_keeps_its_places():
    code = "/- x -/ import A\n\ntheorem t : True := trivial"
    body = split_program(code).body
    assert body.index("theorem") == code.index("theorem")
    assert not body[: body.index("theorem")].strip()


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("theorem a : T := p\nlemma b : T := p", ["a", "b"]),
        ("namespace A.B\ntheorem c : T := p\nend A.B\ntheorem d : T := p", ["A.B.c", "d"]),
        ("namespace A\nnamespace B\ntheorem c : T := p\nend B\ntheorem d : T := p", ["A.B.c", "A.d"]),
        ("namespace A.B\nend B\ntheorem c : T := p", ["A.c"]),
        ("namespace A\ntheorem _root_.e : T := p\nend A", ["e"]),
        ("section S\nmutual\ntheorem f : T := p\nend\nend S\ntheorem g : T := p", ["f", "g"]),
        ('-- theorem no : T\n/- theorem no : T -/\ndef s := "theorem no : T"', []),
        ("theorem «a b».c : T := p", ["«a b».c"]),
        ("theorem twice : T := p\ntheorem twice : T := p", ["twice"]),
        ("def theorem_like := 1\nexample : T := p", []),
    ],
)
def test_declared_theorems_have_their_full_names(code, names):
    assert declared_theorems(code) == names


def test_the_name_of_a_statement_is_as_written():
    assert statement_name("/-- theorem no -/ theorem A.b' (n : Nat) : T") == "A.b'"
    assert statement_name("example : T") is None


PLAIN = [
    "theorem t : True := trivial",
    "@[simp] theorem t : True := trivial",
    "@[simp, reducible] def f := 1\nattribute [local simp] f",
    "open Classical in\ntheorem t : True := by simp [foo] at *",
    "/- a macro in a comment, and syntax -/\ntheorem t : True := trivial -- notation",
    "set_option maxRecDepth 1000 in theorem t : True := by omega",
    "theorem t : True := by simp (config := { decide := true }) [foo (n := x + 1)]",
    "theorem u : f = 1 := by native_decide",  # an axiom decides, and no kernel could replay it
]
CHANGING = [
    'notation "x" => 1',
    'local notation3 "x" => 1',
    'infixl:65 " + " => f',
    'scoped prefix:max "-" => f',
    'macro "x" : tactic => `(tactic| skip)',
    "macro_rules | `(x) => `(y)",
    'syntax "x" : term',
    "declare_syntax_cat foo",
    'elab "x" : tactic => pure ()',
    "@[macro Lean.Parser.Command.print] def f := 1",
    "@[command_elab foo] def f := 1",
    "@[app_unexpander Eq] def f := 1",
    "@[delab app.Eq] def f := 1",
    "@[norm_num f] def f := 1",
    "@[aesop safe tactic] def f := 1",
    "@[«macro» x] def f := 1",
    "attribute [macro f] g",
    "attribute [simp, tactic x] g",
    "@[simp",
    "run_cmd f",
    "#eval f",
    "initialize f",
    "unsafe def f := 1",
    "@[implemented_by g] def f := 1",
    "set_option debug.skipKernelTC true",
    "theorem t : True := by run_tac f",
    "@[builtin_term_parser] def f := 1",
    "#guard_msgs (drop warning) in f",
    # Programs that run while Lean elaborates, in the same process.
    "theorem u : 1 + 0 = 1 := by simp (config := (cast lcProof f : Nat → Lean.Meta.Simp.Config) 0)",
    "theorem u : 1 + 0 = 1 := by simp (config := f 0)",
    "theorem u : 1 + 0 = 1 := by simp (maxSteps := f 0)",
    "theorem u : 1 + 0 = 1 := by aesop (add safe tactic f)",
    "theorem u : p := by plausible",
    "def f := unsafeCast 1",
    "def f := «unsafeBaseIO» g",
    "set_option doc.verso true",
    "@[to_additive (attr := tactic x)] def f := 1",
]


@pytest.mark.parametrize("code", PLAIN)
def test_plain_programs_are_plain(code):
    assert is_plain(split_program(code))


@pytest.mark.parametrize("code", CHANGING)
def test_programs_that_can_change_the_language_are_not(code):
    assert not is_plain(split_program(f"theorem t : True := trivial\n{code}\n"))
