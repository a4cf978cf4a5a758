"""Does a program hold the statement that it is asked to prove? Textually, for predictions alone.

The evaluator sees a program and not what it should prove (learning-lean-feedback, Appendix B: matching the statement is
left to Lean). A policy could answer every hard problem with an easy theorem and wait for the cutoff; so a prediction of
`valid` counts only for a program that holds the statement word for word, white space aside. That is necessary and not
sufficient: only Lean compares what the words mean.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache

from services.proofs.lexical import IDENTIFIER_REST, SPACE
from services.proofs.masking import Region, mask
from services.proofs.policy import THEOREM_WORDS

LONGEST = 16_384
"""A longer statement, in characters, counts as not held."""

_KEYWORD = rf"(?<![{IDENTIFIER_REST}.«])(?:{'|'.join(THEOREM_WORDS)})"
_find_keyword = re.compile(_KEYWORD).search
_TOKENS = re.compile(rf"[{IDENTIFIER_REST}«»]+|[^{SPACE}]")
_WORDS = re.compile(rf"[{IDENTIFIER_REST}«»]")


def holds_statement(code: str, statement: str) -> bool:
    """Whether `code` declares the theorem of `statement` (as `read_statement` gives it) in the same words.

    Time linear in the text. A comment inside of the declaration makes it other words.
    """
    if len(statement) > LONGEST:
        return False
    found = list(_declaration(statement).finditer(code))
    if not found:
        return False
    regions = mask(code[: found[-1].end()]).regions
    comments = [(start, end) for start, end, kind in regions if kind in (Region.COMMENT, Region.DOC_COMMENT)]
    starts = [start for start, _ in comments]
    for declaration in found:
        before = bisect_right(starts, declaration.start()) - 1
        if before < 0 or comments[before][1] <= declaration.start():
            return True
    return False


@lru_cache(maxsize=4096)
def _declaration(statement: str) -> re.Pattern[str]:
    """The statement's words from its keyword on, with any white space between them, and a proof behind."""
    keyword = _find_keyword(statement)
    tokens = _TOKENS.findall(statement, keyword.end() if keyword else 0)
    parts = [_KEYWORD]
    joined = True
    for token in tokens:
        word = bool(_WORDS.match(token))
        parts.append(rf"[{SPACE}]+" if word and joined else rf"[{SPACE}]*")
        parts.append(re.escape(token))
        joined = word
    return re.compile("".join([*parts, rf"[{SPACE}]*(?::=|\|)"]))
