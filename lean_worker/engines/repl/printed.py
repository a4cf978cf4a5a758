"""Reads a term that Lean printed with `pp.all` back into a form in which two equal terms are equal.

The REPL answers with text alone, so types are compared as text: printed by the probes' own options (`probes.PRINTING`:
full names, every implicit argument, instance and universe; no notation; embedded proofs hidden, which is sound because
proofs of one proposition are equal in Lean). What may differ between equal types is put into a canonical form here:
names of bound variables become their binding depth, universe parameters their position, `A → B` and `∀ (a : A), B` one
form. Binder kinds are kept apart.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass

_DELIMITERS = '\\s()\\[\\]{}⦃⦄,;:→∀@"«»'
_TOKEN = re.compile(
    rf"""\s+
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<character>'(?:[^'\\]|\\[^x u]|\\x[0-9a-fA-F]{{2}}|\\u[0-9a-fA-F]{{4}})')
    | (?P<symbol>:=|=>|\.\{{|[()\[\]{{}}⦃⦄,;:→∀@])
    | (?P<word>(?:[^{_DELIMITERS}.]|«[^»]*»|\.(?!\{{))+)""",
    re.VERBOSE | re.DOTALL,
)
_OPENING = {"(": ")", "{": "}", "⦃": "⦄", "[": "]"}
_CLOSING = set(_OPENING.values())
_ENDS = {"", ",", ";", ":", ":=", "=>", *_CLOSING}
_KEYWORDS = {"fun", "∀", "let", "have", "@"}
_LEVEL_WORDS = {"max", "imax"}
_DEEPEST = 2_000  # nesting beyond this is no statement; it also bounds the recursion of the reader
_FRAMES_A_LEVEL = 6


class UnreadableTerm(ValueError):
    """The text is not a term as the probes print it."""


@dataclass(frozen=True, slots=True)
class Term:
    """A printed term in canonical form. Equal `words` mean equal terms up to proofs; `kinds` are its binder kinds."""

    words: tuple[str, ...]
    kinds: tuple[str, ...]
    constants: frozenset[str]


def read_term(text: str, levels: Mapping[str, int] | None = None) -> Term:
    """Parse `text`; `levels` gives the position of each universe parameter.

    Raises:
        UnreadableTerm: unbalanced, too deep, or cut short by the printer.
    """
    reader = _Reader(_tokens(text), dict(levels or {}))
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(usual + _DEEPEST * _FRAMES_A_LEVEL)
    try:
        words = reader.expression({}, 0)
    finally:
        sys.setrecursionlimit(usual)
    if reader.position != len(reader.tokens):
        raise UnreadableTerm(f"unexpected {reader.peek()!r}")
    return Term(tuple(words), tuple(reader.kinds), frozenset(reader.constants))


def _applied(items: list[list[str]]) -> list[str]:
    return items[0] if len(items) == 1 else ["(", *itertools.chain.from_iterable(items), ")"]


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None or found.end() == position:
            raise UnreadableTerm(f"cannot read {text[position : position + 20]!r}")
        if found.lastgroup is not None:
            tokens.append(found.group())
        position = found.end()
    return tokens


class _Reader:
    """Recursive descent. A scope maps each visible bound name to its depth."""

    def __init__(self, tokens: list[str], levels: dict[str, int]) -> None:
        self.tokens = tokens
        self.levels = levels
        self.position = 0
        self.nesting = 0
        self.kinds: list[str] = []
        self.constants: set[str] = set()

    def peek(self, ahead: int = 0) -> str:
        place = self.position + ahead
        return self.tokens[place] if place < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        word = self.peek()
        if word == "" or (expected is not None and word != expected):
            raise UnreadableTerm(f"expected {expected or 'a term'}, found {word or 'the end'!r}")
        self.position += 1
        return word

    def expression(self, scope: dict[str, int], depth: int) -> list[str]:
        """Everything up to the next closing bracket, separator or end."""
        self.nesting += 1
        if self.nesting > _DEEPEST:
            raise UnreadableTerm("too deep")
        try:
            return self._expression(scope, depth)
        finally:
            self.nesting -= 1

    def _expression(self, scope: dict[str, int], depth: int) -> list[str]:
        items: list[list[str]] = []  # a function and its arguments; a single item needs no brackets
        while True:
            word = self.peek()
            if word in _ENDS:
                if not items:
                    raise UnreadableTerm(f"nothing before {word or 'the end'!r}")
                return _applied(items)
            if word == "→":
                self.take()
                self.kinds.append("(")
                return ["(", "∀", *_applied(items), *self.expression(scope, depth + 1), ")"]
            if word in ("∀", "fun"):
                items.append(self._bound(scope, depth))
            elif word in ("let", "have"):
                items.append(self._local(scope, depth))
            elif word in _OPENING and self._starts_binder():
                items.append(self._arrow_of_binders(scope, depth))
            else:
                items.append(self._atom(scope, depth, first=not items))

    def _atom(self, scope: dict[str, int], depth: int, first: bool) -> list[str]:
        word = self.take()
        if word == "(":
            inside = self.expression(scope, depth)
            self.take(")")
            return inside
        if word == ".{":
            return [".{", *self._levels("}"), "}"]
        if word in ("Sort", "Type") and first and self.peek() not in {*_ENDS, "→"}:
            if self.peek() == "(":
                self.take()
                return [word, ".{", *self._levels(")"), "}"]
            return [word, ".{", self._level(self.take()), "}"]
        if word in _OPENING:
            raise UnreadableTerm(f"unexpected {word!r}")
        return [self._name(word, scope)]

    def _name(self, word: str, scope: dict[str, int]) -> str:
        if word[0] in "\"'@⋯" or word[0].isdigit():
            return word
        if word in scope:
            return f"#{scope[word]}"
        head, dot, field = word.rpartition(".")
        if dot and field.isdigit() and head in scope:
            return f"#{scope[head]}.{field}"
        self.constants.add(word)
        return word

    def _level(self, word: str) -> str:
        if word in self.levels:
            return f"#u{self.levels[word]}"
        return word

    def _levels(self, closing: str) -> list[str]:
        words: list[str] = []
        depth = 1
        while True:
            word = self.take()
            if word == "(":
                depth += 1
            elif word in (")", "}"):
                depth -= 1
                if depth == 0:
                    if word != closing:
                        raise UnreadableTerm("unbalanced universe levels")
                    return words
            words.append(word if word in _LEVEL_WORDS else self._level(word))

    def _starts_binder(self) -> bool:
        """Whether the bracket here opens a binder: `(x y : A)`, or any bracket but a parenthesis."""
        if self.peek() != "(":
            return True
        ahead = 1
        while self.peek(ahead) not in _ENDS and self.peek(ahead) not in _OPENING and self.peek(ahead) not in _KEYWORDS:
            ahead += 1
        return ahead > 1 and self.peek(ahead) == ":"

    def _binders(self, scope: dict[str, int], depth: int, end: str) -> tuple[list[list[str]], dict[str, int], int]:
        """Binder groups up to `end`: the type of each variable, the scope inside, the depth inside."""
        types: list[list[str]] = []
        while self.peek() != end:
            opening = self.take()
            if opening not in _OPENING:
                raise UnreadableTerm(f"expected a binder, found {opening!r}")
            closing = _OPENING[opening]
            start = self.position
            names = []
            while self.peek() not in {"", ":", closing} and self.peek() not in _OPENING:
                names.append(self.take())
            if self.peek() == ":":
                self.take()
            else:  # an instance without a name
                self.position, names = start, [""]
            place = self.position
            for name in names:
                self.position = place
                types.append(self.expression(scope, depth))
                self.kinds.append(opening)
                scope = {**scope, name: depth}
                depth += 1
            self.take(closing)
        self.take(end)
        return types, scope, depth

    def _bound(self, scope: dict[str, int], depth: int) -> list[str]:
        quantifier = self.take()
        types, inner, inside = self._binders(scope, depth, "," if quantifier == "∀" else "=>")
        return _nested(quantifier, types, self.expression(inner, inside))

    def _arrow_of_binders(self, scope: dict[str, int], depth: int) -> list[str]:
        types, inner, inside = self._binders(scope, depth, "→")
        return _nested("∀", types, self.expression(inner, inside))

    def _local(self, scope: dict[str, int], depth: int) -> list[str]:
        keyword, name = self.take(), self.take()
        self.take(":")
        kind = self.expression(scope, depth)
        self.take(":=")
        value = self.expression(scope, depth)
        self.take(";")
        body = self.expression({**scope, name: depth}, depth + 1)
        return ["(", keyword, *kind, *value, *body, ")"]


def _nested(quantifier: str, types: list[list[str]], body: list[str]) -> list[str]:
    words: list[str] = []
    for kind in types:
        words += ["(", quantifier, *kind]
    return [*words, *body, *[")"] * len(types)]
