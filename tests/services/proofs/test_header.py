from __future__ import annotations

import pytest
from hypothesis import given
from lean_text import soup

from services.contracts.lean import Position
from services.contracts.outcomes import Profile, Reason
from services.proofs.header import attach_header, find_misplaced_import, header_fault, read_imports
from services.proofs.masking import mask
from services.proofs.policy import MAX_CHARACTERS
from services.proofs.precheck import precheck

BODY = "theorem t : True := trivial\n"


def entries(source: str) -> set[str]:
    return set(read_imports(mask(source)).entries)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (BODY, set()),
        ("import Lean", {"import Lean"}),
        ("import Lean\nimport Std.Data\n" + BODY, {"import Lean", "import Std.Data"}),
        ("import Lean import Std\n" + BODY, {"import Lean", "import Std"}),
        ("/- a -/ import -- b\n  Lean -- c\n/- d -/ import Std", {"import Lean", "import Std"}),
        ("\r\nimport Lean\r\n", {"import Lean"}),
        ("import «Lean».Elab", {"import Lean.Elab"}),
        ("prelude\nimport Init", {"prelude", "import Init"}),
        (
            "module\npublic import A\nmeta import B\npublic meta import all C\nimport all",
            {"module", "public import A", "meta import B", "public meta import all C", "import all"},
        ),
        ("import Lean\npublic theorem t : True := trivial", {"import Lean"}),
        ("/-- doc -/ import Lean", set()),
        ("/-! doc -/ import Lean", set()),
        ("import", set()),
        ("import Lean.", set()),
        ("imports Lean", set()),
        ("\ufeffimport Lean", set()),
        ("import Lean\nopen Nat\nimport Std", {"import Lean"}),
    ],
)
def test_imports_that_are_read(source: str, expected: set[str]) -> None:
    assert entries(source) == expected


@given(soup)
def test_any_text_has_an_import_block(source: str) -> None:
    block = read_imports(mask(source))
    assert 0 <= block.start <= block.end <= len(source)
    assert bool(block.entries) == (block.end > 0)


@pytest.mark.parametrize(
    ("source", "offset"),
    [
        ("import Lean\nopen Nat\nimport Std", 21),
        ("/-- doc -/ import Lean", 11),
        ("theorem t : True := trivial import Lean", 28),
        ("-- import A\n" + BODY, None),
        ("theorem t : x.import = import' := «import»", None),
    ],
)
def test_misplaced_imports(source: str, offset: int | None) -> None:
    masked = mask(source)
    assert find_misplaced_import(masked, read_imports(masked)) == offset


@pytest.mark.parametrize(
    ("code", "header", "reason"),
    [
        ("import Lean\n", "import Lean\nopen Nat\nset_option autoImplicit false", None),
        ("import Std\nimport Lean\n", "import Lean\nimport Std", None),
        ("import Lean\nimport Lean\n", "import Lean", None),
        ("", "import Lean", Reason.HEADER_MISMATCH),
        ("import Lean\nimport Std\n", "import Lean", Reason.HEADER_MISMATCH),
        ("import Lean.Elab\n", "import Lean", Reason.HEADER_MISMATCH),
        ("import lean\n", "import Lean", Reason.HEADER_MISMATCH),
        ("public import Lean\n", "import Lean", Reason.HEADER_MISMATCH),
        ("module\nimport Lean\n", "import Lean", Reason.HEADER_MISMATCH),
        ("open Nat\n", "open Nat", None),
        ("import Lean\nopen Nat\nimport Lean\n", "import Lean", Reason.MISPLACED_IMPORT),
    ],
)
def test_only_imports_are_compared(code: str, header: str, reason: Reason | None) -> None:
    found = precheck(code + BODY, header, Profile.STRICT)
    assert (found.reason if found else None) is reason


def test_a_mismatch_says_what_is_missing_and_what_is_too_much() -> None:
    found = precheck("import Std\n" + BODY, "import Lean", Profile.STRICT)
    assert found is not None
    assert found.detail == "the import block lacks `import Lean` and has `import Std`"


def test_a_header_is_added_only_where_imports_are_missing() -> None:
    program = attach_header(BODY, "import Lean\nopen Nat -- end")
    assert program.text == "import Lean\nopen Nat -- end\n" + BODY
    assert program.added_lines == 2
    assert program.position_in_candidate(Position(line=3, column=4)) == Position(line=1, column=4)
    assert attach_header("import Std\n" + BODY, "import Lean").added_lines == 0
    assert attach_header(BODY, "  \n").text == BODY


@pytest.mark.parametrize(
    ("code", "header", "text"),
    [
        pytest.param(BODY, "import A\nopen Nat", "import A\nopen Nat\n" + BODY, id="nothing is there"),
        pytest.param("import A\n" + BODY, "import A\nopen Nat", "import A\n" + BODY, id="its imports are there"),
        pytest.param("open Nat\n" + BODY, "import A\nopen Nat", "import A\nopen Nat\n" + BODY, id="the rest is there"),
        pytest.param(
            "\n-- mine\nopen   Nat -- a\n\n" + BODY,
            "import A\n/- b -/\nopen Nat\n",
            "import A\n\n-- mine\nopen   Nat -- a\n\n" + BODY,
            id="the rest is there, spaced otherwise",
        ),
        pytest.param("def a := 1\n" + BODY, "def a := 1", "def a := 1\n" + BODY, id="all is there, without imports"),
        pytest.param("def a := 2\n" + BODY, "def a := 1", "def a := 1\ndef a := 2\n" + BODY, id="something else"),
        pytest.param('def a := ""\n' + BODY, 'def a := "x"', 'def a := "x"\ndef a := ""\n' + BODY, id="another text"),
        pytest.param("open Nat.A\n" + BODY, "open Nat", "open Nat\nopen Nat.A\n" + BODY, id="a longer word"),
        pytest.param(BODY, "import A", "import A\n" + BODY, id="imports alone"),
    ],
)
def test_a_header_is_not_added_twice(code: str, header: str, text: str) -> None:
    program = attach_header(code, header)
    assert program.text == text
    assert program.text[program.added_characters :] == code
    assert program.added_lines == program.text.count("\n") - code.count("\n")
    assert attach_header(program.text, header).text == text or not read_imports(mask(header)).entries


@given(soup, soup)
def test_the_candidates_own_text_stays_whatever_is_added(code: str, header: str) -> None:
    program = attach_header(code, header)
    assert program.text[program.added_characters :] == code
    assert header.startswith(program.text[: program.added_characters].removesuffix("\n"))


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        ("import A\ndef x : Nat := sorry", "it uses `sorry`"),
        ("axiom a : False", "it uses `axiom`"),
        ("theorem h : p := by admit", "it uses `admit`"),
        ("open Nat\n#exit", "it uses `#exit`"),
        ("open Nat /- never closed", "it has an unterminated comment"),
        ("open Nat\nimport A", "it has an `import` behind other commands"),
        ("import A\nset_option maxHeartbeats 0\n#eval 1 -- sorry\nopaque f : Nat", None),
        ("", None),
    ],
)
def test_a_header_that_would_be_charged_to_every_candidate(header: str, fault: str | None) -> None:
    assert header_fault(header) == fault


@pytest.mark.parametrize("copy", ["", "{}\n", "\n-- again\n{}\n"])
def test_what_a_header_holds_is_never_the_candidates_fault(copy: str) -> None:
    header = "import A\n#eval 1\nset_option maxHeartbeats 0"
    code = copy.format("#eval 1\nset_option\n  maxHeartbeats 0") + BODY
    program = attach_header(code, header)
    assert precheck(program.text, header, Profile.STRICT, added=program.added_characters) is None
    found = precheck(program.text + "#eval 1", header, Profile.STRICT, added=program.added_characters)
    assert found is not None
    assert found.reason is Reason.FORBIDDEN_CONSTRUCT


def test_only_the_candidates_own_characters_and_theorems_count() -> None:
    header = "-- " + "x" * 100 + "\ntheorem of_the_header : True := trivial"
    longest = BODY + "-" * (MAX_CHARACTERS - len(BODY))
    for code, reason in ((longest, None), (longest + "-", Reason.TOO_LONG), ("def x := 1", Reason.NO_THEOREM)):
        program = attach_header(code, header)
        assert program.added_lines == 2
        found = precheck(program.text, header, Profile.STRICT, added=program.added_characters)
        assert (found.reason if found else None) is reason
