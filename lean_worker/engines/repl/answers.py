"""Turns what the REPL answered to a candidate into the parts of a `CheckAnswer`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lean_interact.interface import CommandResponse, Pos
from lean_interact.interface import Message as ReplMessage

from services.contracts.lean import AxiomUse, Message, Position, Severity, TacticState

CORE_AXIOMS = frozenset({"propext", "Classical.choice", "Quot.sound"})
# Axioms of the library that a proof must not rest on: a placeholder, and trust in the compiler.
FOREIGN_AXIOMS = frozenset({"sorryAx", "Lean.ofReduceBool", "Lean.ofReduceNat", "Lean.trustCompiler"})

MAX_MESSAGES = 200
MAX_MESSAGE_CHARACTERS = 8_192
MAX_TOTAL_CHARACTERS = 131_072
MAX_TACTICS = 5_000

# Until 2025 with quotes, since then with backquotes.
_PLACEHOLDER = re.compile(r"declaration uses ['`]sorry['`]")
_HEARTBEATS = re.compile(r"\(deterministic\) timeout|maximum number of heartbeats")
_SEVERITIES = {"error": Severity.ERROR, "warning": Severity.WARNING}


def position(pos: Pos | None) -> Position | None:
    return Position(line=pos.line, column=pos.column) if pos is not None and pos.line >= 1 else None


def messages(reply: CommandResponse) -> tuple[tuple[Message, ...], bool]:
    """Messages within limits, errors kept first when there is not room for all, and whether something was cut."""
    order = sorted(range(len(reply.messages)), key=lambda i: reply.messages[i].severity != "error")
    kept: dict[int, Message] = {}
    room = MAX_TOTAL_CHARACTERS
    truncated = len(order) > MAX_MESSAGES
    for i in order[:MAX_MESSAGES]:
        raw = reply.messages[i]
        limit = min(room, MAX_MESSAGE_CHARACTERS)
        truncated = truncated or len(raw.data) > limit
        kept[i] = Message(
            severity=_SEVERITIES.get(raw.severity, Severity.INFO),
            data=raw.data[:limit],
            pos=position(raw.start_pos),
            end_pos=position(raw.end_pos),
        )
        room -= min(len(raw.data), limit)
    return tuple(kept[i] for i in sorted(kept)), truncated


def uses_placeholder(reply: CommandResponse) -> bool:
    """Lean warned of a placeholder, or the REPL found one in a proof."""
    return bool(reply.sorries) or any(_PLACEHOLDER.search(message.data) for message in reply.messages)


def out_of_heartbeats(reply: CommandResponse) -> ReplMessage | None:
    return next((m for m in reply.messages if m.severity == "error" and _HEARTBEATS.search(m.data)), None)


def tactic_states(reply: CommandResponse) -> tuple[TacticState, ...]:
    """The REPL gives the goals before each tactic; those after it are the goals before what follows it."""
    found = reply.tactics[:MAX_TACTICS]
    states = []
    for i, tactic in enumerate(found):
        start, end = position(tactic.start_pos), position(tactic.end_pos)
        if start is None or end is None:
            continue
        following = next((later.goals for later in found[i + 1 :] if later.start_pos >= tactic.end_pos), "")
        states.append(
            TacticState(
                tactic=tactic.tactic,
                pos=start,
                end_pos=end,
                goals_before=_goals(tactic.goals),
                goals_after=_goals(following),
            )
        )
    return tuple(states)


def _goals(text: str) -> tuple[str, ...]:
    """Goals as Lean prints them, one below the other: behind a conclusion, the next line not indented starts one."""
    goals: list[list[str]] = []
    concluded = True
    for line in text.splitlines():
        if not line.strip() or line.strip() == "no goals":
            continue
        if concluded and not line.startswith(" "):
            goals.append([])
            concluded = False
        goals[-1].append(line)
        concluded = concluded or line.startswith("⊢")
    return tuple("\n".join(goal) for goal in goals)


def classify_axioms(names: Sequence[str], in_library: frozenset[str]) -> AxiomUse:
    """Core, library, or foreign: the last are the candidate's own and those that no proof may rest on."""
    core = sorted(name for name in names if name in CORE_AXIOMS)
    library = sorted(name for name in names if name in in_library - CORE_AXIOMS - FOREIGN_AXIOMS)
    rest = sorted(set(names) - set(core) - set(library))
    return AxiomUse(core=tuple(core), library=tuple(library), foreign=tuple(rest))
