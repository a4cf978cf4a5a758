from __future__ import annotations

import pytest
from hypothesis import given
from lean_text import soup

from services.contracts.lean import Position
from services.contracts.outcomes import Profile, Reason
from services.proofs.header import attach_header, find_misplaced_import, read_imports
from services.proofs.masking import mask
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
