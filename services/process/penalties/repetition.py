"""Rule 1, consecutive repetition: the third and every later back-to-back run of one normalised shell command.

Runs are counted call by call, over steps and stages alike. Any other call in between ends the sequence; a turn without
a call does not (else one sentence between runs would evade the rule). A text that does not parse is compared as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.process.penalties.actions import Turn
from services.process.penalties.evidence import Penalty, quoted


def check(turns: Sequence[Turn]) -> Iterator[Penalty]:
    command: str | None = None
    first = run = 0
    for turn in turns:
        flagged = False
        for action in turn.actions:
            if action.command is None or not action.command:
                command, run = None, 0
            elif action.command == command:
                run += 1
            else:
                command, run, first = action.command, 1, turn.step.index
            if run >= 3 and not flagged and command is not None:
                flagged = True
                yield Penalty(turn.step.index, 1, f"run {run} in a row of the same command", quoted(command), first)
