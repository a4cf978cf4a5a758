"""Macros whose expansion is computed: code of the program that Lean runs while it checks the program.

``macro "x" : tactic => `(tactic| simp)`` only rewrites syntax, and everything that it can produce stands in the text,
where the precheck sees it. A macro with a program on its right side can build any command, ``set_option debug...``
included, from strings. So each right side must be one quotation without computed splices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from services.proofs.lexical import IDENTIFIER_REST, SPACE
from services.proofs.words import WordSearch

COMMAND_START = re.compile(
    r"(?:import|open|export|namespace|section|end|variable|universe|set_option|attribute|theorem|lemma|def|abbrev|example|"
    r"instance|structure|inductive|class|private|protected|noncomputable|nonrec|local|scoped|notation3?|infix[lr]?|prefix|"
    r"postfix|macro|macro_rules|syntax|declare_syntax_cat|binder_predicate|mutual|public|module|prelude|deriving|partial|"
    rf"alias|omit|include)(?![{IDENTIFIER_REST}])|@\[|#[a-z]"
)
"""What may begin a command of a proof; longer than the list of what honest programs use, shorter than Lean's."""

MACRO_WORDS = ("macro", "binder_predicate", "macro_rules")
"""Words that `computed_macros` looks behind."""

_macros = WordSearch(("macro", "binder_predicate"))
_macro_rules = WordSearch(("macro_rules",))
_space = re.compile(rf"[{SPACE}]*").match
_parenthesis = re.compile(r"\$?\(|\)").finditer
_kind = re.compile(rf"[{SPACE}]*\([{SPACE}]*kind[{SPACE}]*:=[^()\n]*\)").match

_Finding = tuple[int, str]
_DETAIL = "a macro must expand to a quotation without computed parts"


def computed_macros(text: str, start: int = 0) -> Iterator[_Finding]:
    """Offsets of macros in masked `text`, from `start` on, that are not a quotation; time linear up to the first."""
    arrow = -1
    for offset, word in _macros.find(text, start):
        if arrow < offset:
            arrow = text.find("=>", offset + len(word))
        end = None if arrow < 0 else _end_of_quotation(text, arrow + 2)
        if end is None or not _is_last(text, end):
            yield offset, _DETAIL
    for offset, word in _macro_rules.find(text, start):
        if not _are_quotations(text, offset + len(word)):
            yield offset, _DETAIL


def _are_quotations(text: str, position: int) -> bool:
    """Whether the alternatives of ``macro_rules`` are all ``| `(pattern) | ... => `(expansion)``."""
    if kind := _kind(text, position):
        position = kind.end()
    if not text.startswith("|", position := _skip(text, position)):
        return False
    while _continues(text, position):
        pattern = _end_of_quotation(text, position + 1)
        if pattern is None:
            return False
        position = _skip(text, pattern)
        if text.startswith("=>", position):
            expansion = _end_of_quotation(text, position + 2)
            if expansion is None:
                return False
            position = _skip(text, expansion)
    return _is_last(text, position)


def _continues(text: str, position: int) -> bool:
    return text.startswith("|", position) and text[position + 1 : position + 2] not in ("|", ">")


def _skip(text: str, position: int) -> int:
    space = _space(text, position)
    return space.end() if space else position


def _end_of_quotation(text: str, position: int) -> int | None:
    """Offset behind a quotation, or None where there is none, it holds ``$(...)`` or it is not closed."""
    position = _skip(text, position)
    if not text.startswith("`(", position):
        return None
    depth = 0
    for found in _parenthesis(text, position + 1):
        symbol = found.group()
        if symbol == "$(":
            return None
        depth += 1 if symbol == "(" else -1
        if depth == 0:
            return found.end()
    return None


def _is_last(text: str, position: int) -> bool:
    """Whether a new command or the end of the text follows: no operator that goes on with the quotation."""
    position = _skip(text, position)
    return position == len(text) or COMMAND_START.match(text, position) is not None
