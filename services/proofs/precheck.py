"""The textual policy that a program must pass before Lean sees it: deterministic, and a failure is final.

Source: learning-lean-feedback, Appendix B, "Verifier acceptance policy"; `docs/policy.md` shows every rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from services.contracts.lean import Position
from services.contracts.outcomes import Profile, Reason
from services.proofs import policy
from services.proofs.configurations import computed_configurations, tactic_rules
from services.proofs.header import end_of_preamble, find_misplaced_import, first_code, read_imports
from services.proofs.lexical import IDENTIFIER, IDENTIFIER_FIRST, IDENTIFIER_REST, SPACE, unescaped
from services.proofs.macros import MACRO_WORDS, computed_macros
from services.proofs.masking import Masked, mask
from services.proofs.positions import position_at
from services.proofs.words import WordSearch


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a program is invalid before Lean has seen it."""

    reason: Reason
    detail: str
    position: Position | None


_Finding = tuple[int, str]  # offset, detail

_theorems = WordSearch(policy.THEOREM_WORDS)
_LOOKED_BEHIND = ("set_option", "attribute", *MACRO_WORDS)  # these begin what `strict` has to look into
_watched_words = {
    Profile.PAPER: WordSearch(policy.FORBIDDEN_WORDS[Profile.PAPER]),
    Profile.STRICT: WordSearch((*policy.FORBIDDEN_WORDS[Profile.STRICT], *_LOOKED_BEHIND), policy.ESCAPES),
}
_unencodable = re.compile("[\x00\ud800-\udfff]").search
# Nearly every program: the keyword behind nothing that could make it part of a name.
_plain_theorem = re.compile(rf"theorem(?<![{IDENTIFIER_REST}.«`]theorem)[{SPACE}]+[{IDENTIFIER_FIRST}«]").search
_declared_name = re.compile(rf"[{SPACE}]+[{IDENTIFIER_FIRST}«]").match
_set_options = WordSearch(("set_option",))
_attribute_commands = WordSearch(("attribute",))
_option_name = re.compile(rf"[{SPACE}]+({IDENTIFIER})").match
_numeral = re.compile(
    rf"[{SPACE}]*(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|[0-9][0-9_]*)(?![{IDENTIFIER_REST}.])"
).match
_BASES = {"0x": 16, "0b": 2, "0o": 8}
_attribute_prefix = re.compile(r"@\[").finditer
_tactic_rule = re.compile(rf"(?<![{IDENTIFIER_REST}.])tactic(?![{IDENTIFIER_REST}.|])").search
_opening_bracket = re.compile(rf"[{SPACE}]*\[").match
_bracket = re.compile(r"[\[\]]").finditer
_attribute_name = re.compile(rf"(?:[\[,]|:=)[{SPACE}]*(?:(?:local|scoped)[{SPACE}]+)?({IDENTIFIER})").finditer


def precheck(
    code: str | None,
    header: str,
    profile: Profile,
    heartbeats: int = policy.DEFAULT_HEARTBEATS,
    added: int = 0,
) -> Rejection | None:
    """The first rule that `code` breaks, or None. Never raises; time linear in the text.

    `code` is a complete program (after `attach_header` where the caller wants that; its first `added` characters are
    not the candidate's then), or None where a response held none; `header` is the preamble whose imports it must carry.
    Text that repeats the header at the top of the program, white space and comments aside, is the caller's own and is
    not searched for forbidden constructs. `heartbeats` is the check's budget.

    Rules in order, each with its reason: ``no_code``; ``too_long``; NUL and lone surrogates, which not every Lean
    front end would read as they stand (``compile_error``: no Lean accepts them as code); ``no_theorem``;
    ``forbidden_construct``; ``header_mismatch``; ``misplaced_import``.
    """
    if code is None:
        return Rejection(Reason.NO_CODE, "the response holds no Lean code", None)
    if len(code) - added > policy.MAX_CHARACTERS:
        detail = f"{len(code) - added:,} characters; at most {policy.MAX_CHARACTERS:,} are allowed"
        return Rejection(Reason.TOO_LONG, detail, None)
    if ("\0" in code or not _is_encodable(code)) and (bad := _unencodable(code)):
        detail = f"U+{ord(bad.group()):04X} cannot be part of a program"
        return Rejection(Reason.COMPILE_ERROR, detail, position_at(code, bad.start()))
    program = mask(code)
    own = max(added, end_of_preamble(code, program, header)) if header else 0
    if not declares_theorem(program.text[own:] if own else program.text):
        return Rejection(Reason.NO_THEOREM, "no theorem is declared outside of comments and strings", None)
    if found := _first_forbidden(code, program, own, profile, heartbeats):
        offset, detail = found
        return Rejection(Reason.FORBIDDEN_CONSTRUCT, detail, position_at(code, offset))
    return _check_imports(code, program, header)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def declares_theorem(text: str) -> bool:
    """Whether masked text declares a theorem: the keyword, and a name behind it."""
    return _plain_theorem(text) is not None or any(
        _declared_name(text, offset + len(word)) for offset, word in _theorems.find(text)
    )


def _first_forbidden(code: str, program: Masked, start: int, profile: Profile, heartbeats: int) -> _Finding | None:
    found = _forbidden_in(program.text, start, profile, heartbeats, masked=True)
    if program.certain:
        return found
    findings = (found, _forbidden_in(code, start, profile, heartbeats, masked=False))
    return min((finding for finding in findings if finding), default=None)


def _forbidden_in(text: str, start: int, profile: Profile, heartbeats: int, masked: bool) -> _Finding | None:
    """The first finding in a text; rules are applied only where a word or sign of theirs occurs, for speed."""
    findings: list[_Finding] = []
    seen: set[str] = set()
    for offset, word in _watched_words[profile].find(text, start, literal_names=masked):
        if word not in _LOOKED_BEHIND:
            findings.append((offset, f"`{word}` is not allowed"))
            break
        seen.add(word)
    if profile is Profile.STRICT:
        rules: list[Iterator[_Finding]] = []
        if "set_option" in seen:
            rules.append(_options(text, start, heartbeats, masked))
        if "attribute" in seen:
            rules.append(_attributes(text, _attribute_command_ends(text, start, masked)))
        if "@[" in text:
            rules.append(_attributes(text, (found.end() for found in _attribute_prefix(text, start))))
        if masked and not seen.isdisjoint(MACRO_WORDS):
            rules.append(computed_macros(text, start))
        rules += [computed_configurations(text, start), tactic_rules(text, start)]
        findings += [first for rule in rules if (first := next(rule, None)) is not None]
    return min(findings) if findings else None


def _options(text: str, start: int, heartbeats: int, masked: bool) -> Iterator[_Finding]:
    for offset, word in _set_options.find(text, start, literal_names=masked):
        name = _option_name(text, offset + len(word))
        if name is None:
            if masked:  # a comment may speak of `set_option`
                yield offset, "`set_option` must name its option"
            continue
        option = unescaped(name.group(1))
        if option in policy.FORBIDDEN_OPTIONS or option.startswith(policy.FORBIDDEN_OPTION_PREFIXES):
            yield offset, f"option `{option}` is not allowed"
        elif option.rpartition(".")[2] == policy.HEARTBEAT_OPTION:
            number = _numeral(text, name.end())
            if number is None:
                yield offset, f"`{option}` must be set to a numeral"
            elif not _within_budget(number.group(1), heartbeats):
                yield offset, f"`{option}` is 0 (unlimited) or above the budget of {heartbeats:,}"


def _within_budget(numeral: str, heartbeats: int) -> bool:
    digits = numeral.replace("_", "").lower()
    base = _BASES.get(digits[:2], 10)
    # Python refuses to read very long numerals; one with more digits than the budget has bits is above it anyway.
    significant = (digits if base == 10 else digits[2:]).lstrip("0")
    return bool(significant) and len(significant) <= heartbeats.bit_length() and int(significant, base) <= heartbeats


def _attribute_command_ends(text: str, start: int, masked: bool) -> Iterator[int]:
    for offset, word in _attribute_commands.find(text, start, literal_names=masked):
        if bracket := _opening_bracket(text, offset + len(word)):
            yield bracket.end()


def _attributes(text: str, lists: Iterable[int]) -> Iterator[_Finding]:
    """Findings in attribute lists, each given by the offset behind its opening bracket."""
    covered = 0
    for start in lists:
        if start <= covered:
            continue  # inside of a list that was read already: time stays linear
        opening = start - 1
        covered = _closing_bracket(text, opening)
        for attribute in _attribute_name(text, opening, covered):
            name = unescaped(attribute.group(1))
            if (
                name in policy.FORBIDDEN_ATTRIBUTES
                or name.startswith(policy.FORBIDDEN_ATTRIBUTE_PREFIXES)
                or name.endswith(policy.FORBIDDEN_ATTRIBUTE_SUFFIXES)
                or (name == "aesop" and _tactic_rule(text, attribute.end(), covered))
            ):
                yield attribute.start(1), f"attribute `{name}` is not allowed"


def _closing_bracket(text: str, opening: int) -> int:
    depth = 0
    for bracket in _bracket(text, opening):
        depth += 1 if bracket.group() == "[" else -1
        if depth == 0:
            return bracket.end()
    return len(text)


@lru_cache(maxsize=64)
def _required_imports(header: str) -> frozenset[str]:
    return read_imports(mask(header)).entries


def _check_imports(code: str, program: Masked, header: str) -> Rejection | None:
    block = read_imports(program)
    required = _required_imports(header)
    if block.entries != required:
        missing, surplus = sorted(required - block.entries), sorted(block.entries - required)
        parts = (("lacks", missing), ("has", surplus))
        differences = [f"{what} `{', '.join(names[:5])}`" for what, names in parts if names]
        position = position_at(code, block.start if block.entries else first_code(program))
        return Rejection(Reason.HEADER_MISMATCH, f"the import block {' and '.join(differences)}"[:500], position)
    misplaced = find_misplaced_import(program, block)
    if misplaced is not None:
        return Rejection(
            Reason.MISPLACED_IMPORT, "`import` is only legal at the top of a program", position_at(code, misplaced)
        )
    return None
