from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from lean_text import Piece, programs, soup

from services.proofs.masking import Region, mask
from services.proofs.words import WordSearch

_markers = WordSearch(("marker",))


def code_words(source: str) -> str:
    return " ".join(mask(source).text.split())


@given(soup)
def test_masking_keeps_length_and_line_breaks(source: str) -> None:
    masked = mask(source)
    assert len(masked.text) == len(source)
    assert [i for i, c in enumerate(source) if c == "\n"] == [i for i, c in enumerate(masked.text) if c == "\n"]


@given(soup)
def test_masking_changes_nothing_outside_of_the_reported_regions(source: str) -> None:
    masked = mask(source)
    end = 0
    for start, stop, _ in masked.regions:
        assert end <= start <= stop <= len(source)
        assert masked.text[end:start] == source[end:start]
        end = stop
    assert masked.text[end:] == source[end:]


@given(soup)
def test_masked_text_holds_no_character_of_a_comment_or_string(source: str) -> None:
    masked = mask(source)
    for start, end, kind in masked.regions:
        allowed = " \n_«»" if kind is Region.ESCAPED_NAME else " \n"
        assert not masked.text[start:end].strip(allowed)


@settings(max_examples=400)
@given(programs())
def test_exactly_the_words_that_lean_reads_as_code_are_found(program: Piece) -> None:
    assert len(list(_markers.find(mask(program.text).text))) == program.markers


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("a /- b -/ c", "a c"),
        ("a /- b /- c -/ d -/ e", "a e"),
        ("/-/ sorry -/ a", "a"),
        ("/- x --/ a", "a"),
        ("/---/ a", "a"),
        ("/-- doc `sorry` -/ a", "a"),
        ("/-! module doc -/ a", "a"),
        ("a -- b\nc", "a c"),
        ("a -- b\rc\nd", "a d"),
        ('a "x -- y" b', "a b"),
        ('a "x \\" sorry" b', "a b"),
        ('a "line\\\n   gap" b', "a b"),
        ('a "two\nlines" b', "a b"),
        ('a r"\\" b', "a b"),
        ('a r#"x "y" z"# b', "a b"),
        ('a r##"x "# y"## b', "a b"),
        ("a '\"' b", "a b"),
        ("a '\\'' b -- \"", "a b"),
        ("a '\\\\' b", "a b"),
        ("a '\\x41' '\\u03bb' b", "a b"),
        ("h' x'' b", "h' x'' b"),
        ("f '' s", "f '' s"),
        ("f ⁻¹' s", "f ⁻¹' s"),
        ('s!"a {b} c"', "s! {b}"),
        ('s!"a \\{b} c"', "s!"),
        ('s!"a {f "}" {x := 1}} c {d}"', "s! {f {x := 1}} {d}"),
        ('m!  "{b}"', "m! {b}"),
        ('f! /- c -/ "{b}"', "f! {b}"),
        ('s!"{s!"{b}"}"', "s! {s! {b} }"),
        ('"plain {b}"', ""),
        ("«sorry» a", "«sorry» a"),
        ('«a "b» c', "«____» c"),
        ("a `sorry b", "a `sorry b"),
        ('xr"\\\\" a', "xr a"),
    ],
)
def test_code_that_is_left(source: str, code: str) -> None:
    masked = mask(source)
    assert code_words(source) == code
    assert masked.unterminated is None


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("a /- b", Region.COMMENT),
        ("a /-/", Region.COMMENT),
        ("a /- /- -/", Region.COMMENT),
        ("/-- a", Region.DOC_COMMENT),
        ("/--/ a", Region.DOC_COMMENT),
        ('a "b', Region.STRING),
        ('a "b\\"', Region.STRING),
        ('a "b\\', Region.STRING),
        ('a r#"b"', Region.STRING),
        ('s!"a {b} c', Region.STRING),
    ],
)
def test_what_runs_to_the_end_is_reported(source: str, kind: Region) -> None:
    assert mask(source).unterminated is kind


@pytest.mark.parametrize(
    "source",
    [
        "a <-- b",  # Lean reads `<-` and `-`
        "{ x //- b -/ }",  # `//` and `-`
        "a /-/- b -/",  # versions differ
        "/--/ a",
        "f ⁻¹'\"' a",  # `⁻¹'` is a token of Mathlib, then a string starts
        "f 1'\"' a",  # a number and a character literal
        'f 1r"\\" a',
        'f .r"\\" a',
        'notation "x-" => 1',
        'notation "a--b" => 1',
        'infix:50 "\\"" => f',
        'macro "q\'" : term => `(1)',
        'foo!"{a}"',  # somebody's macro may not interpolate
        'syntax "say" interpolatedStr(term) : term\n#check say "{a}"',
        's!"{a',
    ],
)
def test_text_that_lean_could_read_otherwise_is_not_certain(source: str) -> None:
    assert not mask(source).certain


@pytest.mark.parametrize(
    "source",
    [
        "theorem t : p := by -- done\n  omega /- c -/",
        "(-- c\n1)",
        'def s := "don\'t {x}" -- "',
        'local notation "𝟚" => (2 : Nat)',
        'infixl:65 " - " => f',
        "simp [h'-- c\n]",
        's!"{a}"',
    ],
)
def test_everyday_text_is_certain(source: str) -> None:
    assert mask(source).certain


@pytest.mark.parametrize(
    "unit",
    ["/-", "-/", "/-/", "--", '"', "'", "''", "«", "»", 's!"{', "{", "}", 'r#"', "#", "\\", "'\\''", "` ", '"a{"'],
)
def test_work_grows_in_proportion_to_hostile_text(
    unit: str, count_calls: Callable[[Callable[[], object]], int]
) -> None:
    """Steps of the scanner, not seconds: twice the text, at most twice the calls, and a bounded number a character."""
    steps = [count_calls(lambda size=size: mask(unit * (size // len(unit)))) for size in (4_000, 8_000)]
    assert steps[1] <= 2 * steps[0] + 100
    assert steps[1] <= 40 * 8_000
