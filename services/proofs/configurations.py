"""Configurations of tactics: terms that Lean compiles and runs while it elaborates the tactic.

``simp (config := e)`` and ``simp (maxSteps := e)`` evaluate ``e``, whatever it computes, and they evaluate it as unsafe
code, where even the compiler's own casts are allowed. So ``strict`` wants literal values: numerals, constructors, the
library's own configurations, and structures of these.

Aesop's rules of the kind ``tactic`` are programs likewise: ``aesop (add safe tactic f)`` runs ``f``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from services.proofs.lexical import IDENTIFIER, IDENTIFIER_FIRST, IDENTIFIER_REST, SPACE, unescaped

# Core's tactics that take a configuration, and those of Mathlib, Aesop and Batteries.
_TACTICS = (
    "ac_nf|aesop|abel|abel_nf|apply|apply_assumption|apply_rules|bv_decide|bv_normalize|bv_omega"
    "|compute_degree|congr|constructor|continuity|convert|convert_to|cutsat|decide|dsimp|erw|ext|field"
    "|field_simp|fun_prop|gcongr|grewrite|grind|grobner|group|grw|hint|itauto|lia|linarith|linear_combination"
    "|match_scalars|measurability|module|monicity|mvcgen|native_decide|nlinarith|noncomm_ring|norm_cast"
    "|norm_num|nth_rewrite|nth_rw|omega|order|plausible|polyrith|positivity|push_cast|push_neg|rel|rewrite"
    "|ring|ring_nf|rw|rwa|simp|simp_all|simp_all_arith|simp_arith|simp_intro|simp_rw|simpa|slim_check"
    "|solve_by_elim|split_ifs|tauto"
)
# What a clause of these names holds is a tactic, a proof or a list of names: elaborated, never run.
_NOT_RUN = frozenset({"disch", "discharger", "norm", "exp", "rule_sets", "erase", "using"})

_clause = re.compile(
    rf"\([{SPACE}]*(\$[{IDENTIFIER_REST}]+(?::[a-z]+)?|{IDENTIFIER})[{SPACE}]*:="  # `$x:ident :=` in a macro too
).finditer
_is_configuration = re.compile(r".*(?:[Cc]onfig|[_.]?cfg|options)").fullmatch
_FLAGS = rf"(?:[{SPACE}]*[+-]{IDENTIFIER})*[{SPACE}]*"
_flags = re.compile(_FLAGS).match
_tactic = re.compile(rf"(?<![{IDENTIFIER_REST}.»+-])(?:{_TACTICS})[!?]*(?![{IDENTIFIER_REST}.]){_FLAGS}(?=\()").finditer
_word = re.compile(rf"(?<![{IDENTIFIER_REST}.»+-])[{IDENTIFIER_FIRST}][{IDENTIFIER_REST}]*{_FLAGS}(?=\()").finditer
_takes_configurations = re.compile(r"optConfig|configItem|Tactic\.config").search
_parenthesis = re.compile(r"[()]").finditer
# No two ways to read a text, or a failure takes exponential time.
_literal = re.compile(
    rf"(?:[{SPACE}{{}}(),:\[\]]|:=|#(?=\[)|[0-9][0-9_]*(?![{IDENTIFIER_REST}.])|\.{IDENTIFIER}(?![{IDENTIFIER_REST}.«])"
    rf"|with(?![{IDENTIFIER_REST}.])"
    rf"|(?!with(?![{IDENTIFIER_REST}.])){IDENTIFIER}(?=[{SPACE}]*(?:[:,}})\]]|$|with(?![{IDENTIFIER_REST}.]))))*"
).fullmatch
_names = re.compile(rf"(?<![{IDENTIFIER_REST}])(\.?)({IDENTIFIER})(?![{SPACE}]*:=)").findall
_declarations = re.compile(
    rf"(?<![{IDENTIFIER_REST}.])(?:def|abbrev|instance|theorem|lemma|structure|inductive|class|alias|irreducible_def)"
    rf"[{SPACE}]+({IDENTIFIER})"
).findall
# What gives a bare name another meaning without declaring it.
_renames = re.compile(r"renaming|notation|infix|prefix|postfix|macro|syntax|export").search

_aesop_clause = re.compile(
    rf"(?:\([{SPACE}]*add|(?<![{IDENTIFIER_REST}.])add_aesop_rules)(?![{IDENTIFIER_REST}.])"
).finditer
_builder = re.compile(rf"(?<![{IDENTIFIER_REST}.])tactic(?![{IDENTIFIER_REST}.|])").search
_next_command = re.compile(rf"\n(?=[^{SPACE}])").search

_Finding = tuple[int, str]


def computed_configurations(text: str, start: int = 0) -> Iterator[_Finding]:
    """Offsets of clauses ``(name := value)`` of tactics in masked `text` whose value is more than a literal.

    Time linear in the text.
    """
    program = _Program(text)
    literal_until = goes_on = -1  # the end of the last literal value; where a tactic's next clause would begin
    for clause in _clause(text, start):
        offset, name = clause.start(), unescaped(clause.group(1))
        if offset < literal_until:
            continue
        if not (_is_configuration(name) or offset == goes_on or offset in program.first_clauses):
            continue
        end = program.closings.get(offset, -1)
        goes_on = flags.end() if end >= 0 and (flags := _flags(text, end)) else -1
        if name in _NOT_RUN:
            continue
        if end < 0 or not program.is_literal(text[clause.end() : end - 1]):
            yield offset, f"the configuration of a tactic must be literal (`{name[:64]}`)"
        literal_until = end


def tactic_rules(text: str, start: int = 0) -> Iterator[_Finding]:
    """Offsets of rules in masked `text` that name a program for Aesop to run; time linear in the text."""
    if "tactic" not in text or "add" not in text:
        return
    program = _Program(text)
    searched = -1
    for clause in _aesop_clause(text, start):
        if clause.start() < searched:
            continue
        if text[clause.start()] == "(":
            searched = program.closings.get(clause.start(), len(text))
        else:
            command = _next_command(text, clause.end())
            searched = command.start() if command else len(text)
        if builder := _builder(text, clause.end(), searched):
            yield builder.start(), "Aesop's rules of the kind `tactic` are not allowed"


class _Program:
    """One program; what is asked of all of it is worked out once, and only when it is needed."""

    def __init__(self, text: str) -> None:
        self._text = text

    def is_literal(self, value: str) -> bool:
        """Whether the value only combines numerals, fields, constructors and constants of the library."""
        if not _literal(value):
            return False
        names = [(dot, name) for dot, name in _names(value) if name not in ("true", "false", "with")]
        if not names:
            return True
        if self._can_rename and any(not dot for dot, _ in names):
            return False
        return self._declared.isdisjoint(_last_component(name) for _, name in names)

    @cached_property
    def closings(self) -> dict[int, int]:
        """For every parenthesis the offset behind the one that closes it."""
        open_at: list[int] = []
        found: dict[int, int] = {}
        for parenthesis in _parenthesis(self._text):
            if parenthesis.group() == "(":
                open_at.append(parenthesis.start())
            elif open_at:
                found[open_at.pop()] = parenthesis.end()
        return found

    @cached_property
    def first_clauses(self) -> frozenset[int]:
        """Offsets of the parentheses that follow a tactic which may take a configuration."""
        # A program with a tactic of its own that passes a configuration on: any word may be that tactic.
        heads = _word if _takes_configurations(self._text) else _tactic
        return frozenset(head.end() for head in heads(self._text))

    @cached_property
    def _can_rename(self) -> bool:
        return _renames(self._text) is not None

    @cached_property
    def _declared(self) -> frozenset[str]:
        return frozenset(map(_last_component, _declarations(self._text)))


def _last_component(name: str) -> str:
    return unescaped(name).rpartition(".")[2]
