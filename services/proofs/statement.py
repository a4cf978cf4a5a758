"""The statement that a candidate must prove: brought to one form, its name read. Lean elaborates it later."""

from __future__ import annotations

import re
from dataclasses import dataclass

from services.proofs.header import find_misplaced_import, read_imports
from services.proofs.lexical import IDENTIFIER, IDENTIFIER_REST, SPACE, unescaped
from services.proofs.masking import Masked, Region, mask
from services.proofs.policy import MAX_CHARACTERS, THEOREM_WORDS
from services.proofs.words import WordSearch


class StatementInvalid(ValueError):
    """The caller's statement cannot be used: reason ``statement_invalid``, never the candidate's fault."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A theorem without its proof.

    `text` ends before any ``:=`` of the proof and says ``theorem`` where the caller wrote ``lemma``, which core Lean
    does not know; what stands before it (doc comment, attributes, ``open ... in``) stays. `name` is as written, without
    ``_root_``: namespaces that the header leaves open are not in it.
    """

    text: str
    name: str


_theorems = WordSearch(THEOREM_WORDS)
_placeholders = WordSearch(("sorry",))
_name = re.compile(rf"[{SPACE}]+({IDENTIFIER})").match
# A definition inside of the type (`let x := 1; ...`) has a `:=` of its own.
_symbol = re.compile(
    rf"[(\[{{⟨⦃]|[)\]}}⟩⦄]|:=|(?<![{IDENTIFIER_REST}.«])(?:let|have|letI|haveI|let_fun|where)(?![{IDENTIFIER_REST}])"
).finditer
_unencodable = re.compile("[\x00\ud800-\udfff]").search


def read_statement(source: str) -> Statement:
    """Normalise a statement that ends in nothing, ``:=``, ``:= by``, ``:= sorry`` or ``:= by sorry``.

    Comments and white space may follow. Raises `StatementInvalid` with a sentence for the caller when `source` declares
    no theorem or several, carries imports or a proof, or cannot be text of a program.
    """
    if len(source) > MAX_CHARACTERS:
        raise StatementInvalid(f"the statement has {len(source):,} characters; at most {MAX_CHARACTERS:,} are allowed")
    if bad := _unencodable(source):
        raise StatementInvalid(f"the statement contains U+{ord(bad.group()):04X}")
    masked = mask(source)
    if masked.unterminated:
        raise StatementInvalid(f"the statement has an unterminated {masked.unterminated.value.replace('_', ' ')}")
    text = _with_solid_literals(masked)
    if read_imports(masked).entries or find_misplaced_import(masked, read_imports(masked)) is not None:
        raise StatementInvalid("imports belong in `header`, not in the statement")
    keywords = list(_theorems.find(text))
    if not keywords:
        raise StatementInvalid("the statement declares no theorem")
    if len(keywords) > 1:
        raise StatementInvalid(f"the statement declares {len(keywords)} theorems, not one")
    offset, keyword = keywords[0]
    named = _name(text, offset + len(keyword))
    if named is None:
        raise StatementInvalid("the theorem has no name")
    end = _end_of_type(text, named.end())
    if next(_placeholders.find(text[:end], offset), None) is not None:
        raise StatementInvalid("the statement itself uses `sorry`")
    # Escaped names are blanked in the masked text, so the name comes from the source.
    name = unescaped(source[named.start(1) : named.end(1)]).removeprefix("_root_.")
    return Statement(f"{source[:offset]}theorem{source[offset + len(keyword) : end]}".strip(SPACE), name)


def _end_of_type(text: str, start: int) -> int:
    """Offset where the type ends; raises `StatementInvalid` for a proof that is more than a placeholder."""
    end = _without_proof(text, start)
    depth = local_definitions = 0
    for found in _symbol(text, start, end):
        symbol = found.group()
        if symbol in "([{⟨⦃":
            depth += 1
        elif symbol in ")]}⟩⦄":
            depth -= 1
        elif depth > 0:
            continue
        elif symbol == "where" or (symbol == ":=" and not local_definitions):
            raise StatementInvalid("the statement carries a proof; it may only end in `:=`, `:= by` or `:= by sorry`")
        else:
            local_definitions += 1 if symbol != ":=" else -1
    return end


def _with_solid_literals(masked: Masked) -> str:
    """The masked text with its literals filled by quotes: at the end of a type they are no white space."""
    parts: list[str] = []
    done = 0
    for start, end, kind in masked.regions:
        if kind in (Region.STRING, Region.CHARACTER):
            parts += [masked.text[done:start], '"' * (end - start)]
            done = end
    return "".join([*parts, masked.text[done:]])


_PROOF_ENDINGS = ((":=", "by", "sorry"), (":=", "sorry"), (":=", "by"), (":=",))


def _without_proof(text: str, start: int) -> int:
    """Offset behind the type and before a proof that is only announced."""
    end = _strip(text, len(text))
    for ending in _PROOF_ENDINGS:
        position = end
        for word in reversed(ending):
            if not text.endswith(word, start, position):
                break
            position = _strip(text, position - len(word))
        else:
            return position
    return end


def _strip(text: str, end: int) -> int:
    return len(text[:end].rstrip(SPACE))
