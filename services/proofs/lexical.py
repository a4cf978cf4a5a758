"""Lean's identifier characters, as pieces of regular expressions.

Source: `Lean.isIdFirst`, `Lean.isIdRest`, `Lean.isLetterLike`, `Lean.isSubScriptAlnum` of Lean's prelude. Letters
that only some versions of Lean accept (Latin-1, Latin Extended-A, subscript j) are left out on purpose: before a
keyword they end a token in one version and continue it in another, so here they never hide anything.
"""

from __future__ import annotations

import re

_LETTER_LIKE = (
    "\u03b1-\u03ba\u03bc-\u03c9\u0391-\u039f\u03a1\u03a2\u03a4-\u03a9\u03ca-\u03fb\u1f00-\u1ffe\u2100-\u214f"
    "\U0001d49c-\U0001d59f"
)
_SUBSCRIPT = "\u2080-\u2089\u2090-\u209c\u1d62-\u1d6a"

IDENTIFIER_FIRST = f"A-Za-z_{_LETTER_LIKE}"
"""Inside of a character class: what may begin an identifier."""

IDENTIFIER_REST = f"A-Za-z0-9_'!?{_LETTER_LIKE}{_SUBSCRIPT}"
"""Inside of a character class: what may continue an identifier."""

SPACE = " \t\r\n"
"""What Lean calls white space; form feeds, no-break spaces and the like are errors."""

_COMPONENT = rf"(?:[{IDENTIFIER_FIRST}][{IDENTIFIER_REST}]*|«[^«»\n]*»)"

IDENTIFIER = rf"{_COMPONENT}(?:\.{_COMPONENT})*"
"""A whole dotted identifier, escaped components included."""

is_identifier_first = re.compile(f"[{IDENTIFIER_FIRST}]").fullmatch
is_identifier_rest = re.compile(f"[{IDENTIFIER_REST}]").fullmatch

_PLAIN_ESCAPE = re.compile(rf"«([{IDENTIFIER_FIRST}][{IDENTIFIER_REST}]*)»")


def unescaped(identifier: str) -> str:
    """`identifier` without the quotes that it does not need: Lean reads ``a.«b»`` and ``a.b`` as one name."""
    return _PLAIN_ESCAPE.sub(r"\1", identifier)
