"""Hypothesis strategies for Lean text: hostile soup, and programs whose code is known by construction."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

SOUP = [
    "/-", "-/", "/--", "/-!", "--", "-", "/", "\n", "\r\n", " ", '"', "\\", "'", "''", "`", "``", "«", "»", "{", "}",
    "(", ")", "[", "]", "@[", "#", 'r"', 'r#"', '"#', 's!"', 'm!"', "!", "sorry", "axiom", "a.", ".", "..", "1", "x",
    "h'", "⁻¹'", "ℕ", "theorem", "theorem t", "import ", "set_option ", "maxHeartbeats ", "attribute ", "tactic", "0x",
    "é", "\x00", "\ud800", "#eval", "<", ":=", "⟨", "λ", "notation", ",",
]  # fmt: skip

soup = st.lists(st.sampled_from(SOUP) | st.text(max_size=3), max_size=60).map("".join)
"""Text made of what confuses scanners, with a little of everything else."""


@dataclass(frozen=True)
class Piece:
    """An element of a Lean list: its text, and the words ``marker`` that Lean reads as code in it."""

    text: str
    markers: int = 0


_comment_body = st.lists(
    st.sampled_from(["marker", '"', "'", "--", "- /", "«", "»", "{", " ", "\n", "s!", "\\", "/- marker -/"]), max_size=6
).map(" ".join)
_line_body = st.lists(st.sampled_from(["marker", '"', "'", "/-", "-/", "«", "{", " ", "\\"]), max_size=6).map(" ".join)
gaps = st.one_of(
    st.sampled_from([" ", "\n", "\r\n", "/-/ marker -/", "/- a /- marker -/ b -/", "/- marker --/"]),
    _comment_body.map(lambda body: f"/- {body} -/"),
    _line_body.map(lambda body: f"-- {body}\n"),
)
"""White space and comments: no code in any of them."""

_in_string = st.lists(
    st.sampled_from(["marker", "--", "/-", "-/", "'", " ", "\\\\", '\\"', "\\n", "«", "»", "\\x41", "ℕ", "}"]),
    max_size=6,
).map("".join)
_in_raw = st.lists(st.sampled_from(["marker", "--", "/-", "\\", "'", "{", "\n"]), max_size=6).map("".join)
_plain = st.one_of(
    st.builds(Piece, _in_string.map(lambda body: f'"{body}"')),
    st.builds(Piece, _in_string.map(lambda body: f'"{body}{{"')),
    st.builds(Piece, _in_raw.map(lambda body: f'r"{body}"')),
    st.builds(Piece, _in_raw.map(lambda body: f'r#"{body}"{body}"#')),
    st.sampled_from(
        [
            Piece("(toString '\"')"),
            Piece("(toString '\\'')"),
            Piece("(toString '-')"),
            Piece("(toString '\\\\')"),
            Piece("(toString '{')"),
            Piece("h'"),
            Piece("h''.marker"),
            Piece("«marker»"),
            Piece('«a " marker -- b»'),
            Piece("marker'"),
            Piece("marker_free"),
            Piece("(toString `marker)"),
            Piece("marker", 1),
            Piece("(id<|marker)", 1),
            Piece("(id $ marker)", 1),
        ]
    ),
)


def _interpolated(inner: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    return st.builds(
        lambda before, gap, piece, after: Piece(f's!"{before}{{{gap}{piece.text}{gap}}}{after}"', piece.markers),
        _in_string.map(lambda text: text.replace("}", "")),
        gaps,
        inner,
        _in_string.map(lambda text: text + "\\{"),
    )


pieces = st.recursive(_plain, _interpolated, max_leaves=3)


@st.composite
def programs(draw: st.DrawFn) -> Piece:
    """A program that Lean accepts, with a known number of code words ``marker`` (here a variable).

    Pieces are joined by a comma and a gap, so that every comment follows a space or a comma.
    """
    items = draw(st.lists(st.tuples(gaps, pieces), min_size=1, max_size=6))
    body = ",".join(f"{gap}{piece.text}" for gap, piece in items)
    text = (
        'def marker\' : String := ""\ndef marker_free : String := ""\n'
        'def List.marker (_ : List String) : String := ""\n'
        "def probe (marker h' «marker» «a \" marker -- b» : String) (h'' : List String) : List String := ["
        f"{body} ]\n"
    )
    # The binder list itself names the variable once.
    return Piece(text, 1 + sum(piece.markers for _, piece in items))
