"""The import block of a program: read, compared with the required one, added where it is missing.

Lean's grammar (`Lean.Parser.Module.header`): ``module``, ``prelude``, then imports, each with optional ``public``,
``meta`` and ``all``; white space and comments between any two words, but no doc comments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from services.contracts.lean import Position
from services.proofs.lexical import IDENTIFIER, IDENTIFIER_REST, SPACE, unescaped
from services.proofs.masking import Masked, Region, mask
from services.proofs.positions import shifted
from services.proofs.words import WordSearch

_word = re.compile(rf"[{SPACE}]*(module|prelude|public|meta|import)(?![{IDENTIFIER_REST}.])").match
_all = re.compile(rf"[{SPACE}]*all(?![{IDENTIFIER_REST}.])").match
_module_name = re.compile(rf"[{SPACE}]*({IDENTIFIER})(?![{IDENTIFIER_REST}.])").match
_not_blank = re.compile(rf"[^{SPACE}]").search
_word_of_code = re.compile(rf"[^{SPACE}]+").finditer
_imports = WordSearch(("import",))
_unsound = WordSearch(("sorry", "admit", "axiom", "#exit"))


@dataclass(frozen=True, slots=True)
class ImportBlock:
    """What a program asks for before its first command.

    `entries` is a set of ``import A.B``, ``public import A``, ``prelude``, ``module``: order and repetition do not
    change what Lean loads.
    """

    entries: frozenset[str]
    start: int  # offset of the first word of the block; 0 when it is empty
    end: int  # offset behind its last word; 0 when it is empty


@dataclass(frozen=True, slots=True)
class Program:
    """A complete program, and how much of it was put before the candidate's own text."""

    text: str
    added_lines: int = 0
    added_characters: int = 0

    def position_in_candidate(self, position: Position) -> Position:
        """Where a position that Lean reported lies in the candidate's own text."""
        return shifted(position, self.added_lines)


def read_imports(program: Masked) -> ImportBlock:
    """The import block at the top of a masked program. Never raises: it ends before the first word that is none."""
    text = program.text
    limit = next((start for start, _, kind in program.regions if kind is not Region.COMMENT), len(text))
    entries: set[str] = set()
    modifiers: list[str] = []
    first: int | None = None
    end = position = 0
    while found := _word(text, position, limit):
        word = found.group(1)
        if first is None:
            first = found.start(1)
        position = found.end()
        if word in ("public", "meta"):
            modifiers.append(word)
            continue
        if word == "import":
            name_at = position
            if (found := _all(text, position, limit)) and _module_name(text, found.end(), limit):
                name_at = found.end()
                word = "import all"
            name = _module_name(text, name_at, limit)
            if name is None:
                break
            position = name.end()
            word = f"{word} {unescaped(name.group(1))}"
        elif modifiers:
            break
        entries.add(" ".join([*modifiers, word]))
        modifiers = []
        end = position
    if first is None or not entries:
        return ImportBlock(frozenset(), 0, 0)
    return ImportBlock(frozenset(entries), first, end)


def find_misplaced_import(program: Masked, block: ImportBlock) -> int | None:
    """Offset of an ``import`` behind the import block; Lean refuses it everywhere else."""
    if program.text.find("import", block.end) < 0:
        return None
    return next((offset for offset, _ in _imports.find(program.text, block.end)), None)


def first_code(program: Masked) -> int:
    """Offset of the first character that is neither white space nor comment (0 for a blank program)."""
    found = _not_blank(program.text)
    return found.start() if found else 0


def attach_header(code: str, header: str) -> Program:
    """Put `header` before code that has no import block of its own (the request's ``prepend_header``).

    Code that carries the rest of the header already is given its imports alone, so that nothing is declared twice.
    """
    own = header.rstrip(SPACE)
    if not own:
        return Program(code)
    program = mask(code)
    if read_imports(program).entries:
        return Program(code)
    if end_of_preamble(code, program, header):
        own = own[: read_imports(mask(own)).end]
        if not own:
            return Program(code)
    prefix = own + "\n"
    return Program(prefix + code, prefix.count("\n"), len(prefix))


def end_of_preamble(code: str, program: Masked, header: str) -> int:
    """Offset behind the preamble of `header` where `code` repeats it after its imports, else 0.

    The preamble is what follows the header's imports. White space and comments do not count, everything else does.
    """
    preamble = _preamble(header)
    if not preamble.words:
        return 0
    begin = read_imports(program).end
    found = list(islice(_word_of_code(program.text, begin), len(preamble.words)))
    end = found[-1].end() if found else 0
    same = tuple(word.group() for word in found) == preamble.words
    return end if same and _literals(code, program, begin, end) == preamble.literals else 0


@dataclass(frozen=True, slots=True)
class _Preamble:
    """The part of a header behind its imports: its words without comments and literals, and the literals."""

    words: tuple[str, ...]
    literals: tuple[str, ...]


@lru_cache(maxsize=64)
def _preamble(header: str) -> _Preamble:
    masked = mask(header)
    begin = read_imports(masked).end
    words = tuple(found.group() for found in _word_of_code(masked.text, begin))
    return _Preamble(words, _literals(header, masked, begin, len(header)))


def _literals(code: str, program: Masked, begin: int, end: int) -> tuple[str, ...]:
    comments = (Region.COMMENT, Region.DOC_COMMENT)
    return tuple(
        code[start:stop] for start, stop, kind in program.regions if begin <= start < end and kind not in comments
    )


@lru_cache(maxsize=64)
def header_fault(header: str) -> str | None:
    """Why no program can be judged behind `header`, in words for the caller; None for a usable one.

    What a header declares is the caller's, so a placeholder or an axiom there would be charged to every candidate.
    """
    masked = mask(header)
    if masked.unterminated:
        return f"it has an unterminated {masked.unterminated.value.replace('_', ' ')}"
    if find_misplaced_import(masked, read_imports(masked)) is not None:
        return "it has an `import` behind other commands"
    found = next(_unsound.find(masked.text), None)
    return f"it uses `{found[1]}`" if found else None
