from __future__ import annotations

import pytest
from hypothesis import given
from lean_text import soup

from services.proofs.statement import StatementInvalid, read_statement

TEXT = "theorem t (a b : Nat) : a + b = b + a"


@pytest.mark.parametrize(
    "ending",
    [
        "",
        " :=",
        " := by",
        " := by sorry",
        " := sorry",
        ":=by\n  sorry\n",
        " := by sorry -- todo",
        "\n  :=\r\n by /- a -/ sorry\n\n",
    ],
)
def test_an_announced_proof_is_taken_away(ending: str) -> None:
    statement = read_statement(TEXT + ending)
    assert statement.text == TEXT
    assert statement.name == "t"


@pytest.mark.parametrize(
    ("source", "name", "text"),
    [
        ("lemma t : True", "t", "theorem t : True"),
        ("theorem _root_.A.b : True := by", "A.b", "theorem _root_.A.b : True"),
        ("theorem «a b».c.{u} (α : Type u) : True", "«a b».c", None),
        ("theorem «a».b : True", "a.b", None),
        (
            "/-- theorem x -/\n@[simp]\nopen Nat in\nset_option autoImplicit false in\ntheorem t' : True := by",
            "t'",
            None,
        ),
        ("theorem opt (n : Nat := 0) (h : n = 0 := by rfl) : n + 0 = n := by sorry", "opt", None),
        (
            "theorem loc : let x := 1; have y := 2; x = y := by sorry",
            "loc",
            "theorem loc : let x := 1; have y := 2; x = y",
        ),
        ("theorem loc : let x := 1; x = 1", "loc", None),
        ('theorem str : ":= by sorry" = "" := by sorry', "str", 'theorem str : ":= by sorry" = ""'),
        ("theorem bysorry : by_sorry = sorry' :=", "bysorry", "theorem bysorry : by_sorry = sorry'"),
    ],
)
def test_statements_that_are_read(source: str, name: str, text: str | None) -> None:
    statement = read_statement(source)
    assert statement.name == name
    if text is not None:
        assert statement.text == text
    assert read_statement(statement.text) == statement, "reading is idempotent"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("", "declares no theorem"),
        ("def t : Nat := 1", "declares no theorem"),
        ("-- theorem t : True", "declares no theorem"),
        ("example : True", "declares no theorem"),
        ("theorem a : True := by sorry\ntheorem b : True", "declares 2 theorems"),
        ("theorem : True", "no name"),
        ("theorem t : True := trivial", "carries a proof"),
        ("theorem t : True := by trivial", "carries a proof"),
        ("theorem t : A where x := 1", "carries a proof"),
        ("theorem t : True := by sorry\nend", "carries a proof"),
        ("theorem t : sorry", "uses `sorry`"),
        ("theorem t : sorry := by sorry", "uses `sorry`"),
        ("import Mathlib\ntheorem t : True", "belong in `header`"),
        ("theorem t : True /- a", "unterminated comment"),
        ('theorem t : "a', "unterminated string"),
        ("theorem t : True \x00", "U+0000"),
        ("theorem t : True \ud800", "U+D800"),
        ("theorem t : " + "a" * 262_144, "262,156 characters"),
    ],
)
def test_statements_that_are_refused(source: str, problem: str) -> None:
    with pytest.raises(StatementInvalid, match=problem.replace("+", r"\+")):
        read_statement(source)


@given(soup)
def test_any_text_is_read_or_refused(source: str) -> None:
    try:
        statement = read_statement(source)
    except StatementInvalid:
        return
    assert statement.name
    assert read_statement(statement.text).name == statement.name
