"""Reference traces: Lean's tactic states and messages written into the program (learning-lean-feedback, Appendix C)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from gpu_evaluator.feedback.blocks import CLOSING, OPENING
from gpu_evaluator.feedback.verdict import strip_delimiters, strip_marks
from services.contracts.lean import Message, Severity, TacticState
from services.proofs.masking import mask

_LINTER_NOTE = "note: this linter can be disabled with"
_DECLARATION = re.compile(
    r"^(?:@\[[^\]\n]*\]\s*)?(?:(?:private|protected|noncomputable|partial|scoped|local)\s+)*"
    r"(?:theorem|lemma|example|def|abbrev|instance)\b",
    re.MULTILINE,
)
_INLINE_PROOF = re.compile(r":=[ \t]*by[ \t]+(?=\S)")
_TOP_LEVEL = re.compile(r"^\S", re.MULTILINE)
_HYPOTHESIS = re.compile(r"([^\s:⊢]+(?: [^\s:⊢]+)*) : (.*)", re.DOTALL)


def prepare_source(program: str) -> str:
    """The program as it is executed for annotation: marks stripped, inline declaration proofs on a line of their own.

    `theorem t : p := by simp` becomes `theorem t : p := by` and, indented, `simp`, so that the first tactic has an
    insertion point. A proof that goes on over several lines stays as it is: moving its first tactic would change the
    column that Lean parses the others against.
    """
    text = strip_marks(program)
    masked = mask(text).text
    cuts: list[tuple[int, int]] = []
    for declaration in _DECLARATION.finditer(masked):
        next_command = _TOP_LEVEL.search(masked, declaration.end())
        end = next_command.start() if next_command else len(masked)
        proof = _INLINE_PROOF.search(masked, declaration.end(), end)
        if proof and not masked[proof.end() : end].strip("\n ").count("\n"):
            cuts.append((proof.end() - len(proof.group()) + len(proof.group().rstrip()), proof.end()))
    pieces, position = [], 0
    for by_end, tactic_start in cuts:
        pieces += [text[position:by_end], "\n  "]
        position = tactic_start
    return "".join([*pieces, text[position:]])


def build_trace(source: str, tactics: Iterable[TacticState], messages: Iterable[Message]) -> str:
    """Write tactic states and messages into `source`, and stop after the first line with an error.

    Args:
        source: the program that was executed, from `prepare_source`.
        tactics: in the order that the engine returned them; the first that starts on a line is kept for that line.
        messages: Lean's messages; warnings are left out, each is placed after the line where its span ends.
    """
    lines = source.split("\n")
    state_before: dict[int, TacticState] = {}
    for tactic in tactics:
        state_before.setdefault(tactic.pos.line, tactic)
    after: dict[int, list[Message]] = defaultdict(list)
    for message in messages:
        end = message.end_pos or message.pos
        after[min(max(end.line if end else 1, 1), len(lines))].append(message)

    written = _Writer()
    known: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        indent = line[: len(line) - len(line.lstrip())]
        if tactic_state := state_before.get(number):
            state = "\n".join(tactic_state.goals_before)
            written.payload(["-- proof state:", *_compact_state(state, known)], indent)
        written.source(line)
        diagnostics = [text for m in after[number] if (text := _diagnostic(m)) is not None]
        if diagnostics:
            written.payload([part for text in diagnostics for part in text.split("\n")], indent)
        if any(m.severity is Severity.ERROR for m in after[number]):
            break
    return written.text()


class _Writer:
    """Collects lines; a payload that directly follows a block is merged into it."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._ends_in_block = False

    def source(self, line: str) -> None:
        self._lines.append(line)
        self._ends_in_block = False

    def payload(self, payload: Sequence[str], indent: str) -> None:
        if self._ends_in_block:
            self._lines.pop()
        else:
            self._lines.append(indent + OPENING)
        # A message can quote the candidate, and must not end the block that holds it.
        self._lines += [indent + strip_delimiters(line) for line in payload]
        self._lines.append(indent + CLOSING)
        self._ends_in_block = True

    def text(self) -> str:
        return "\n".join(self._lines)


def _compact_state(state: str, known: dict[str, str]) -> list[str]:
    """The lines of one printed proof state, without the hypotheses whose printed value in `known` is unchanged."""
    written: list[str] = []
    for entry in _joined(state):
        declaration = None if entry.startswith(("⊢", "case ")) else _HYPOTHESIS.fullmatch(entry)
        if declaration is None:
            written.append(entry)
            continue
        names, value = declaration.groups()
        for name in names.split(" "):
            before = known.get(name)
            known[name] = value
            if before is None:
                written.append(f"{name} : {value}")
            elif before != value:
                written.append(f"{name} : {value} (was {before})")
    return written


def _joined(state: str) -> list[str]:
    """The entries of a state: indented lines continue the entry before; a goal's own lines stay apart."""
    entries: list[str] = []
    in_goal = False
    for line in state.split("\n"):
        if not line.strip():
            in_goal = False
        elif line[0].isspace() and entries and not in_goal:
            entries[-1] += " " + line.strip()
        else:
            in_goal = line.startswith("⊢") or (in_goal and line[0].isspace())
            entries.append(line)
    return entries


def _diagnostic(message: Message) -> str | None:
    if message.severity is Severity.WARNING:
        return None
    lines = [line for line in message.data.split("\n") if not line.strip().lower().startswith(_LINTER_NOTE)]
    text = "\n".join(lines).strip()
    return f"-- type: {message.severity.value}, msg: {text}" if text else None
