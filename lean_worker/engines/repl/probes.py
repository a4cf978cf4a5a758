"""The server's own questions to Lean about a declaration, and how their answers are read.

Each probe is a command of its own, sent after the candidate's, and carries a nonce made for it alone that its answer
must repeat, so nothing that a candidate printed, prints later or writes to the REPL's output can pass for an answer.
It names declarations from the root, so namespaces, opened names and variables do not matter, and first sets every
option of the printer, so the candidate's options do not matter. Syntax and attributes do matter, so a probe runs either
after a candidate that cannot have changed them (`plain`) or in an environment to which only its constants were carried
over.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lean_interact.interface import CommandResponse, Message

from lean_worker.engines.repl.printed import Term, UnreadableTerm, read_term

# Everything that decides what the printer shows. Versions of Lean know different ones, see `printing_options`.
PRINTING: dict[str, str] = {
    "maxRecDepth": "10000",
    "maxHeartbeats": "0",
    "profiler": "false",
    "trace.profiler": "false",
    "pp.all": "true",
    "pp.notation": "false",
    "pp.parens": "false",
    "pp.fullNames": "true",
    "pp.privateNames": "true",
    "pp.universes": "true",
    "pp.explicit": "true",
    "pp.match": "false",
    "pp.coercions": "false",
    "pp.coercions.types": "false",
    "pp.structureInstances": "false",
    "pp.structureInstances.flatten": "false",
    "pp.structureInstances.defaults": "true",
    "pp.structureInstanceTypes": "true",
    "pp.anonymousConstructorNotation": "false",
    "pp.fieldNotation": "false",
    "pp.fieldNotation.generalized": "false",
    "pp.funBinderTypes": "true",
    "pp.piBinderTypes": "true",
    "pp.piBinderNames": "false",
    "pp.piBinderNames.hygienic": "false",
    "pp.letVarTypes": "true",
    "pp.foralls": "true",
    "pp.natLit": "true",
    "pp.numericTypes": "false",
    "pp.instances": "true",
    "pp.instanceTypes": "false",
    "pp.motives.pi": "true",
    "pp.motives.nonConst": "true",
    "pp.motives.all": "true",
    "pp.beta": "false",
    "pp.instantiateMVars": "true",
    "pp.mvars": "true",
    "pp.mvars.levels": "true",
    "pp.mvars.anonymous": "true",
    "pp.mvars.withType": "false",
    "pp.mvars.delayed": "true",
    "pp.proofs": "false",
    "pp.proofs.withType": "false",
    "pp.proofs.threshold": "0",
    "pp.safeShadowing": "true",
    "pp.sanitizeNames": "true",
    "pp.deepTerms": "true",
    "pp.maxSteps": "10000000",
    "pp.oneline": "false",
    "pp.raw": "false",
    "pp.analyze": "false",
    "pp.tagAppFns": "false",
    "pp.exprSizes": "false",
    "pp.unicode": "true",
    "pp.unicode.fun": "false",
    "pp.sorrySource": "false",
    "pp.inaccessibleNames": "true",
    "format.unicode": "true",
    "format.width": "100000",
    "format.indent": "2",
}
_UNKNOWN_OPTION = re.compile(r"unknown option", re.IGNORECASE)
_UNKNOWN_CONSTANT = re.compile(r"unknown (?:constant|identifier|declaration)", re.IGNORECASE)
_PRINTED = re.compile(
    r"(?:@\[[^\]]*\]\s*)*(?:(?P<private>private)\s+|protected\s+|noncomputable\s+|unsafe\s+|partial\s+|scoped\s+)*"
    r"(?P<kind>theorem|def|axiom|opaque|inductive|structure|class\s+inductive|class|constructor|recursor|instance|abbrev"
    r"|Quotient primitive)\s+(?P<name>(?:«[^»]*»|[^\s:.{(\[«]|\.(?!\{))+)(?:\.\{(?P<levels>[^}]*)\})?\s*(?P<rest>.*)",
    re.DOTALL,
)
_AXIOMS = re.compile(r"'.*' depends on axioms: \[(?P<names>.*)\]", re.DOTALL)
_NO_AXIOMS = re.compile(r"'.*' does not depend on any axioms", re.DOTALL)
_AXIOM_NAME = re.compile(r"(?:«[^»]*»|[^,\s«])+")
_KINDS = {
    "inductive": "induct",
    "structure": "induct",
    "class": "induct",
    "constructor": "ctor",
    "recursor": "rec",
    "instance": "def",
    "abbrev": "def",
    "Quotient primitive": "quot",
}
_VALUE_HIDDEN = "⋯"
_TRACE = "["  # what a candidate's `set_option trace...` adds; no answer of Lean's begins so


# The number in it cannot be written, so no program declares such a name; nor can a probe ask for it.
_LIBRARY_PRIVATE = re.compile(r"_private\.[A-Z][\w.]*\.0\.")


class ProbeFault(Exception):
    """A probe's answer is not an answer to it: the REPL's output was tampered with, or the probe itself failed."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A command and the nonce that its answer repeats; the questions stand on the lines from 2 on."""

    text: str
    nonce: str
    count: int

    def read(self, answer: CommandResponse) -> list[Message | None]:
        """The one message that answers each question, None where Lean said nothing.

        Raises:
            ProbeFault: the nonce is missing, or a question has two answers.
        """
        by_line: dict[int, list[Message]] = {}
        for message in answer.messages:
            if message.severity in ("info", "error") and not message.data.startswith(_TRACE):
                by_line.setdefault(message.start_pos.line, []).append(message)
        signed = by_line.get(self.count + 2, [])
        if len(signed) != 1 or self.nonce not in signed[0].data or signed[0].severity != "info":
            raise ProbeFault("the answer to a probe does not carry its nonce")
        if 1 in by_line:
            raise ProbeFault(f"the printer's options cannot be set: {by_line[1][0].data[:200]}")
        answers: list[Message | None] = []
        for line in range(2, self.count + 2):
            found = by_line.get(line, [])
            if len(found) > 1:
                raise ProbeFault(f"a probe has {len(found)} answers")
            answers.append(found[0] if found else None)
        return answers


def make_probe(questions: Sequence[str], options: str = "") -> Probe:
    """One command that sets `options`, then asks all `questions`, each on a line of its own."""
    if any("\n" in line for line in (options, *questions)):
        raise ValueError("options and questions are one line each")
    nonce = secrets.token_hex(16)
    return Probe("\n".join([options, *questions, f'#check "{nonce}"']), nonce, len(questions))


def option_questions() -> list[str]:
    """Setting a Boolean or number to a string fails either way; the message says whether the option exists."""
    return [f'set_option {name} "?"' for name in PRINTING]


def printing_options(answers: Sequence[Message | None]) -> str:
    """The commands that set those options of `PRINTING` that this Lean knows, on one line.

    Raises:
        ProbeFault: it does not even know `pp.all`: that is no Lean that we can read.
    """
    known = [
        name
        for name, answer in zip(PRINTING, answers, strict=True)
        if answer is not None and not _UNKNOWN_OPTION.search(answer.data)
    ]
    if "pp.all" not in known:
        raise ProbeFault("this Lean does not know the option pp.all")
    return " ".join(f"set_option {name} {PRINTING[name]}" for name in known)


def print_question(name: str) -> str:
    return f"#print _root_.{name}"


def axioms_question(name: str) -> str:
    return f"#print axioms _root_.{name}"


@dataclass(frozen=True, slots=True)
class Printed:
    """A declaration as `#print` shows it. `value` is None where it is hidden or has none.

    `type` is None where Lean prints no single term (inductive types) or a text that cannot be read.
    """

    name: str
    kind: str
    levels: tuple[str, ...]
    type: Term | None
    value: Term | None
    text: str


def read_printed(name: str | None, message: Message | None) -> Printed | None:
    """The declaration `name` (None: whichever Lean found), or None when it does not exist.

    Raises:
        ProbeFault: Lean answered something else.
    """
    if message is None:
        raise ProbeFault(f"no answer to the question about {name}")
    if message.severity == "error":
        if _UNKNOWN_CONSTANT.search(message.data):
            return None
        raise ProbeFault(f"the question about {name} failed: {message.data[:200]}")
    found = _PRINTED.match(message.data.strip())
    if found is None:
        raise ProbeFault(f"cannot read the declaration {message.data[:80]!r}")
    if found["private"] or (name is not None and _root(found["name"]) != _root(name)):
        return None  # a private declaration, or one that Lean found under another name
    kind = " ".join(found["kind"].split())
    kind = _KINDS.get(kind.split()[0] if kind != "Quotient primitive" else kind, kind)
    levels = tuple(level.strip() for level in (found["levels"] or "").split(",") if level.strip())
    type_, value = _signature(found["rest"], levels) if kind in ("theorem", "def", "axiom", "opaque") else (None, None)
    return Printed(_root(found["name"]), kind, levels, type_, value, " ".join(found["rest"].split()))


def _root(name: str) -> str:
    return name.removeprefix("_root_.")


def _signature(rest: str, levels: tuple[str, ...]) -> tuple[Term | None, Term | None]:
    """Type and value; no type when the text cannot be read, which then equals no other type."""
    return (_kept_signature if len(rest) <= _LONGEST_KEPT else _read_signature)(rest, levels)


def _read_signature(rest: str, levels: tuple[str, ...]) -> tuple[Term | None, Term | None]:
    if not rest.startswith(":"):
        return None, None
    positions = {level: place for place, level in enumerate(levels)}
    try:
        head, assigned, value = _split_value(rest[1:])
        kind = read_term(head, positions)
        return kind, read_term(value, positions) if assigned and value.strip() != _VALUE_HIDDEN else None
    except UnreadableTerm:
        return None, None


# The right answers to one problem all print the same.
_LONGEST_KEPT = 20_000  # characters; a term takes some twenty bytes for each
_kept_signature = lru_cache(maxsize=32)(_read_signature)


def _split_value(text: str) -> tuple[str, bool, str]:
    """Split `type := value` at the assignment outside brackets, `let`s, strings and quoted names."""
    depth = lets = position = 0
    while position < len(text):
        character = text[position]
        if character == '"':
            position += 1
            while position < len(text) and text[position] != '"':
                position += 2 if text[position] == "\\" else 1
        elif character == "«":
            position = text.find("»", position)
            if position < 0:
                raise UnreadableTerm("an unclosed quoted name")
        elif text.startswith(("'('", "')'", "'['", "']'", "'{'", "'}'", "'\"'"), position):
            position += 2
        elif character in "([{⦃":
            depth += 1
        elif character in ")]}⦄":
            depth -= 1
        elif depth == 0 and (found := re.compile(r"(?<!\S)(?:let|have)\s").match(text, position)):
            lets += 1
            position = found.end() - 1
        elif depth == 0 and text.startswith(":=", position):
            if lets == 0:
                return text[:position], True, text[position + 2 :]
            lets -= 1
            position += 1
        position += 1
    return text, False, ""


def read_axioms(name: str, message: Message | None) -> tuple[str, ...]:
    """The axioms that `#print axioms` lists, by their full names.

    Raises:
        ProbeFault: Lean answered something else.
    """
    text = message.data.strip() if message is not None else ""
    if message is not None and message.severity == "info":
        if found := _AXIOMS.fullmatch(text):
            return tuple(_root(axiom) for axiom in _AXIOM_NAME.findall(found["names"]))
        if _NO_AXIOMS.fullmatch(text):
            return ()
    raise ProbeFault(f"the question for the axioms of {name} failed: {text[:200]}")


def new_constants(terms: Iterable[Term | None], known: Collection[str]) -> set[str]:
    """Names in `terms` that are not among `known`."""
    return {_root(name) for term in terms if term is not None for name in term.constants} - set(known)


def is_library_private(name: str) -> bool:
    """A private name of a module that was imported; those of the program itself carry no module."""
    return _LIBRARY_PRIVATE.match(name) is not None
