"""Places in a program: offsets in code points to the line and column that Lean reports."""

from __future__ import annotations

from services.contracts.lean import Position


def position_at(text: str, offset: int) -> Position:
    """The place of code point `offset` (0 to ``len(text)``); only ``\\n`` ends a line, as in Lean."""
    return Position(line=text.count("\n", 0, offset) + 1, column=offset - (text.rfind("\n", 0, offset) + 1))


def shifted(position: Position, lines: int) -> Position:
    """`position` in the text from which the first `lines` lines are taken away; never above line 1."""
    return Position(line=max(1, position.line - lines), column=position.column)
