"""Does a program hold the statement that it is asked to prove? Textually, for predictions alone.

The evaluator sees a program and not what it should prove (learning-lean-feedback, Appendix B: matching the statement is
left to Lean). A policy could answer every hard problem with an easy theorem and wait for the cutoff; so a prediction of
`valid` counts only for a program that holds the statement word for word, white space aside. That is necessary and not
sufficient: only Lean compares what the words mean.
"""

from __future__ import annotations

import re
from functools import lru_cache

from services.proofs.lexical import IDENTIFIER_REST, SPACE
from services.proofs.masking import Region, mask
from services.proofs.policy import THEOREM_WORDS

LONGEST = 16_384
"""A longer statement, in characters, counts as not held."""
_DECLARATIONS = 64  # of one name are looked at: more of them are no proof
_SLACK = 256

_KEYWORD = re.compile(rf"(?<![{IDENTIFIER_REST}.«])(?:{'|'.join(THEOREM_WORDS)})[{SPACE}]+([^{SPACE}({{\[:]+)")
_SPACES = re.compile(rf"[{SPACE}]+")
_LOOSE = re.compile(rf" (?![{IDENTIFIER_REST}«])|(?<![{IDENTIFIER_REST}»]) ")
_COMMENT = re.compile("--|/-")
_UNSEEN = re.compile(r"/-\s*<feedback>", re.IGNORECASE)
"""Opens a feedback block, which no model sees (the evaluator strips it); to Lean it may stand in a string."""
_proof = re.compile(rf"[{SPACE}]*(?::=|\|)").match


def positive_counts(code: str, statement: str | None) -> bool:
    """Whether a prediction of `valid` may count: a model has seen all of `code`, and it holds the statement, if any.

    What stands in a feedback block is unseen: a policy could hide a false proof between two strings that look like one.
    """
    return not _UNSEEN.search(code) and (not statement or holds_statement(code, statement))


def holds_statement(code: str, statement: str) -> bool:
    """Whether `code` declares the theorem of `statement` (as `read_statement` gives it) in the same words.

    Time linear in the text. A comment inside of the declaration, or very much white space, makes it other words.
    """
    declared = _declared(statement)
    if declared is None:
        return False
    name, verbatim, words, reach = declared
    seen = 0
    for found in _KEYWORD.finditer(code):
        if found.group(1) != name:
            continue
        seen += 1
        if seen > _DECLARATIONS:
            return False
        if code.startswith(verbatim, found.end()):
            held = _proof(code, found.end() + len(verbatim)) is not None
        else:
            text = _plain(code[found.end() : found.end() + reach])
            held = text.startswith(words) and _proof(text, len(words)) is not None
        if held and _is_code(code, found.start()):
            return True
    return False


def _is_code(code: str, offset: int) -> bool:
    """Whether the text before `offset` leaves no comment open there."""
    before = code[: offset + 1]
    if not _COMMENT.search(before):
        return True
    comments = [end for _, end, kind in mask(before).regions if kind in (Region.COMMENT, Region.DOC_COMMENT)]
    return not comments or comments[-1] <= offset


@lru_cache(maxsize=4096)
def _declared(statement: str) -> tuple[str, str, str, int] | None:
    """The name as written, what stands behind it, that in plain words, and how much of a program may hold it."""
    found = _KEYWORD.search(statement)
    if found is None or len(statement) > LONGEST:
        return None
    verbatim = statement[found.end() :]
    return found.group(1), verbatim, _plain(verbatim), 2 * len(verbatim) + _SLACK


def _plain(text: str) -> str:
    """With white space only where it separates two words."""
    return _LOOSE.sub("", _SPACES.sub(" ", text))
