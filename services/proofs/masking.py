"""Comments and strings of a Lean program blanked out, so that what is left can be searched as code.

The rules are Lean's own (`Lean.Parser.whitespace`, `finishCommentBlock`, `strLitFnAux`, `rawStrLitFnAux`,
`charLitFnAux`, `interpolatedStrFn`, `identFnAux`), checked against Lean 4.28. Time is linear in the text.

Lean's lexer is extensible, so no scanner outside of Lean can be exact: after ``notation "x-"`` the text ``x-- sorry``
holds no comment. Where the text allows another reading (a comment glued to an operator, tokens of the program's own
that contain quotes or dashes, versions of Lean that differ), `Masked.certain` is false, and who searches for forbidden
words must search the unmasked text as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from services.proofs.lexical import IDENTIFIER_FIRST, IDENTIFIER_REST, SPACE, is_identifier_rest


class Region(Enum):
    """What a blanked region holds."""

    COMMENT = "comment"
    DOC_COMMENT = "doc_comment"  # `/--` and `/-!`: tokens of the grammar, not white space
    STRING = "string"
    CHARACTER = "character"
    ESCAPED_NAME = "escaped_name"  # «...» whose text is no plain identifier


@dataclass(frozen=True, slots=True)
class Masked:
    """A program with its comments, strings and character literals blanked.

    `text` has the length and the line breaks of the source. Plain escaped names (``«sorry»``) stay, others keep their
    quotes around underscores. Braces and code of interpolation holes stay.
    """

    text: str
    regions: tuple[tuple[int, int, Region], ...]  # offsets [start, end), ascending
    unterminated: Region | None  # the comment or string that runs to the end of the text
    certain: bool


_JUMP = rf"-(?=-)|/(?=-)|\"|«|'(?<![{IDENTIFIER_REST}]')"
_next_in_code = re.compile(_JUMP).search
_next_in_hole = re.compile(_JUMP + r"|\{|\}").search
_next_in_comment = re.compile(r"/-|-/").search
_next_in_string = re.compile(r'["\\]').search
_next_in_interpolated = re.compile(r'["\\{]').search
_character = re.compile(r"""'(?:[^\\']|\\(?:[\\"'rnt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}))'""").match
_plain_name = re.compile(rf"[{IDENTIFIER_FIRST}][{IDENTIFIER_REST}]*").fullmatch

# A comment or a literal may follow these directly; after another symbol Lean may have read a longer token.
_ENDS_A_TOKEN = frozenset(SPACE + "()[]{}⟨⟩,;\"'»")
_WHOLE_TOKENS = frozenset({":=", "=>"})  # no longer token of Lean or Mathlib begins so
_INTERPOLATED = frozenset({"s!", "m!", "f!"})
# A number that a quote follows: the quote starts a literal, while after a name it belongs to the name. The second
# expression is slow, and only looked for where the first is found.
_quoted_after_word = re.compile(r"'(?<=[0-9A-Za-z_.]')(?:\\|[^\\']')").search
_number_with_quote = re.compile(rf"[0-9](?<![{IDENTIFIER_REST}][0-9])[0-9A-Za-z_.]*'").search
_declares_tokens = re.compile(
    "notation|infix|prefix|postfix|macro|syntax|elab|binder_predicate|simproc|declare_"
).search
_confusing_token = re.compile(r"""--|/-|["'«»`\\]|.[-/.]$""", re.DOTALL).search
# Besides s!, m! and f!, these read a plain-looking string as interpolated.
_may_interpolate = re.compile(
    r"interpolatedStr|throw[A-Za-z]*Error|log[A-Z]|trace\[|dbg_trace|println!|reportIssue!|Macro\.trace"
).search


def blank(text: str) -> str:
    """Spaces in place of everything but line breaks."""
    if "\n" not in text:
        return " " * len(text)
    return "\n".join([" " * len(line) for line in text.split("\n")])


def mask(source: str) -> Masked:
    """Blank the comments, strings and character literals of `source`. Never raises."""
    return _Scanner(source).scan()


class _Scanner:
    def __init__(self, source: str) -> None:
        self.source = source
        self.parts: list[str] = []
        self.regions: list[tuple[int, int, Region]] = []
        self.done = 0  # everything before it is in `parts`
        self.certain = True
        self.quotes = '"' in source
        self.braced = False  # a plain string holds a brace
        self.unterminated: Region | None = None
        self.holes: list[int] = []  # open interpolation holes: the depth of braces in each
        self.before = ""  # the last code before a run of white space and comments, at most three characters
        self.escapes_end = True  # a closing » may still follow

    def scan(self) -> Masked:
        source, position = self.source, 0
        while True:
            found = (_next_in_hole if self.holes else _next_in_code)(source, position)
            if found is None:
                break
            start = found.start()
            character = source[start]
            if character == "-":
                end = source.find("\n", start)
                position = self._comment(start, len(source) if end < 0 else end, Region.COMMENT)
            elif character == "/":
                position = self._block_comment(start)
            elif character == '"':
                position = self._string_literal(start)
            elif character == "'":
                position = self._quote(start)
            elif character == "«":
                position = self._escaped_name(start)
            else:
                position = self._brace(start, character)
        self.parts.append(source[self.done :])
        text = "".join(self.parts)
        return Masked(text, tuple(self.regions), self.unterminated, self._is_certain(text))

    def _is_certain(self, text: str) -> bool:
        if not self.certain or self.holes:
            return False
        if _quoted_after_word(self.source) and _number_with_quote(text):
            return False
        if self.braced and _may_interpolate(text):
            return False
        return not self.quotes or not (
            any(
                _confusing_token(self.source[start + 1 : end - 1].strip(SPACE))
                for start, end, kind in self.regions
                if kind is Region.STRING
            )
            and _declares_tokens(text)
        )

    def _cover(self, start: int, end: int, kind: Region, replacement: str | None = None) -> int:
        source = self.source
        code = source[self.done : start]
        if self.quotes:  # only a string asks for what stands before it
            if kind is not Region.COMMENT and kind is not Region.DOC_COMMENT:
                self.before = ""
            elif stripped := code.rstrip(SPACE):
                self.before = stripped[-3:]
        self.parts.append(code)
        self.parts.append(blank(source[start:end]) if replacement is None else replacement)
        self.regions.append((start, end, kind))
        self.done = end
        return end

    def _check_glue(self, start: int) -> None:
        """A symbol directly before a comment or literal may be part of a token that swallows its first character."""
        if not start or (previous := self.source[start - 1]) in _ENDS_A_TOKEN or is_identifier_rest(previous):
            return
        if self.source[start - 2 : start] not in _WHOLE_TOKENS:
            self.certain = False

    def _comment(self, start: int, end: int, kind: Region) -> int:
        self._check_glue(start)
        return self._cover(start, end, kind)

    def _block_comment(self, start: int) -> int:
        source = self.source
        third = source[start + 2 : start + 3]
        kind = Region.DOC_COMMENT if third in ("-", "!") else Region.COMMENT
        # The character after `/-` never opens nor closes anything: `/-/` opens. Where it could, versions differ.
        if source[start + 2 : start + 4] in ("/-", "-/", "!/"):
            self.certain = False
        depth, position = 1, start + 3
        while depth:
            found = _next_in_comment(source, position)
            if found is None:
                self.unterminated = kind
                return self._comment(start, len(source), kind)
            depth += 1 if found.group() == "/-" else -1
            position = found.end()
        return self._comment(start, position, kind)

    def _string_literal(self, quote: int) -> int:
        source = self.source
        hashes = quote
        while hashes > self.done and source[hashes - 1] == "#":
            hashes -= 1
        if hashes > self.done and source[hashes - 1] == "r":
            start = hashes - 1
            previous = source[start - 1] if start > self.done else ""
            if not previous or not (is_identifier_rest(previous) or previous == "."):
                self._check_glue(start)
                return self._raw_string(start, quote, quote - hashes)
            if previous.isdigit() or previous == ".":
                self.certain = False  # `1r"` is a raw string, `h1r"` is not, `x.r"` is not, `.r"` may be
        code = source[self.done : quote].rstrip(SPACE)
        before = code[-3:] if code else self.before
        if before.endswith("!"):
            if before[-2:] not in _INTERPOLATED or (len(before) == 3 and is_identifier_rest(before[0])):
                self.certain = False  # somebody's own macro: its string may be interpolated
            return self._string(quote, quote + 1, interpolated=True)
        self._check_glue(quote)
        return self._string(quote, quote + 1, interpolated=False)

    def _raw_string(self, start: int, quote: int, hashes: int) -> int:
        closing = '"' + "#" * hashes
        end = self.source.find(closing, quote + 1)
        if end < 0:
            self.unterminated = Region.STRING
            return self._cover(start, len(self.source), Region.STRING)
        return self._cover(start, end + len(closing), Region.STRING)

    def _string(self, start: int, position: int, *, interpolated: bool) -> int:
        """Cover a string, or a part of an interpolated one up to its next hole, from `start`; read on at `position`."""
        source = self.source
        while True:
            found = (_next_in_interpolated if interpolated else _next_in_string)(source, position)
            if found is None:
                self.unterminated = Region.STRING
                return self._cover(start, len(source), Region.STRING)
            position = found.end()
            character = found.group()
            if character == "\\":
                position += 1
            elif character == "{":
                self._cover(start, position - 1, Region.STRING)
                self.holes.append(0)
                return position
            else:
                if not interpolated and not self.braced and source.find("{", start, position) >= 0:
                    self.braced = True
                return self._cover(start, position, Region.STRING)

    def _brace(self, start: int, character: str) -> int:
        if character == "{":
            self.holes[-1] += 1
        elif self.holes[-1]:
            self.holes[-1] -= 1
        else:
            self.holes.pop()
            # The brace stays in the text as code; the string goes on behind it.
            self.parts.append(self.source[self.done : start + 1])
            self.done = start + 1
            return self._string(start + 1, start + 1, interpolated=True)
        return start + 1

    def _quote(self, start: int) -> int:
        if self.source.startswith("''", start):  # a token of Mathlib, never a literal
            return start + 2
        literal = _character(self.source, start)
        if literal is None:
            return start + 1
        self._check_glue(start)
        return self._cover(start, literal.end(), Region.CHARACTER)

    def _escaped_name(self, start: int) -> int:
        end = self.source.find("»", start) if self.escapes_end else -1
        if end < 0:
            self.escapes_end = False
            self.certain = False
            return start + 1
        inner = self.source[start + 1 : end]
        if _plain_name(inner):
            return end + 1
        covered = "\n".join(["_" * len(line) for line in inner.split("\n")])
        return self._cover(start, end + 1, Region.ESCAPED_NAME, f"«{covered}»")
