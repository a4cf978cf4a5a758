"""Whole-word search in Lean code: a word counts where Lean's lexer would end a token before and behind it.

``sorry_free``, ``sorry'``, ``Foo.sorry``, ``h.constant``, ``«sorry»`` and the name literal ```sorry`` are other tokens;
``1sorry``, ``id<|sorry`` and ``..sorry`` hold the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from services.proofs.lexical import IDENTIFIER_FIRST, IDENTIFIER_REST, SPACE, is_identifier_first, is_identifier_rest

_FIELD_MAY_FOLLOW = frozenset(SPACE + ")]}⟩»([{⟨,·")
"""Before a dot: then the dot starts a field or a dotted name, and what follows it is no keyword."""


class WordSearch:
    """A compiled search for a fixed set of words."""

    def __init__(self, words: Sequence[str], names: Sequence[str] = ()) -> None:
        """`names` are patterns of constants that count as any component of a name: in `a.name` and `«name»`, too."""
        self._finditer = re.compile(_alternatives(words, names)).finditer
        self._is_name = re.compile("|".join(names) or "(?!)").fullmatch
        self._few = tuple(words) if len(words) <= 2 and not names else ()

    def find(self, text: str, start: int = 0, *, literal_names: bool = True) -> Iterator[tuple[int, str]]:
        """Offsets and words in `text` from `start` on, ascending; time linear in the text.

        With `literal_names` off (unmasked text, where quotes mean nothing) only identifiers shield a word.
        """
        if self._few and all(word not in text for word in self._few):
            return  # much faster than the expression, for words that few programs hold
        shielded_until = -1  # end of the last word found inside of an identifier
        for found in self._finditer(text, start):
            offset, word = found.start(), found.group()
            shieldable = offset > 0 and word[0] != "#"
            if self._is_name(word) and shieldable and text[offset - 1] in ".«":
                yield offset, word
            elif shieldable and self._is_shielded(text, offset, found.end(), shielded_until, literal_names):
                shielded_until = found.end()
            else:
                yield offset, word

    @staticmethod
    def _is_shielded(text: str, start: int, end: int, shielded_until: int, literal_names: bool) -> bool:
        previous = text[start - 1]
        if previous == "«":
            return literal_names and text[end : end + 1] == "»"
        if previous == "`":
            return literal_names
        if previous != "." and not is_identifier_rest(previous):
            return False
        # Walk to the start of the token: an identifier hides the word, a number or an operator does not.
        first = start
        while first > 0 and first > shielded_until and (text[first - 1] == "." or is_identifier_rest(text[first - 1])):
            first -= 1
        if first == shielded_until:
            return True
        before = text[first - 1] if first else ""
        if text[first] == ".":
            if text[first : first + 2] == ".." or not literal_names:
                return before == "»" and literal_names
            return not before or before in _FIELD_MAY_FOLLOW
        return bool(is_identifier_first(text[first]))


def _alternatives(words: Iterable[str], names: Iterable[str]) -> str:
    """One branch for each first letter, so that the engine skips quickly to where a word may start."""
    branches: dict[str, list[str]] = {}
    for word in sorted(words, key=len, reverse=True):
        behind = ""
        if is_identifier_rest(word[-1]):
            behind = rf"(?![{IDENTIFIER_REST}])"
            if word[0] != "#":
                behind += rf"(?!\.[{IDENTIFIER_FIRST}«])"
        branches.setdefault(word[0], []).append(re.escape(word[1:]) + behind)
    for name in names:
        branches.setdefault(name[0], []).append(rf"{name[1:]}(?![{IDENTIFIER_REST}])")
    return "|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in sorted(branches.items()))
