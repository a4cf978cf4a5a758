"""Rule 4, general pure-print script: each call of the step runs a script whose syntax tree holds only prints of
literals.

The script is given to an interpreter inline (``-c``, ``-e``), by heredoc, here-string or pipe, or is a notebook cell;
Python, JavaScript, Ruby, Perl, PHP and a BEGIN block of awk are read. Constant prints and no-ops of the shell may
stand beside it. A script in a file, one that the shell expands first, or one that feeds another program is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.process.penalties.actions import Action, Turn
from services.process.penalties.behaviour import Kind
from services.process.penalties.evidence import Penalty, quoted

_ALLOWED = {Kind.PRINTS_BY_SCRIPT, Kind.PRINTS, Kind.NOTHING}


def is_pure_print(action: Action) -> bool:
    return Kind.PRINTS_BY_SCRIPT in action.behaviour.kinds and action.behaviour.kinds <= _ALLOWED


def check(turns: Sequence[Turn]) -> Iterator[Penalty]:
    for turn in turns:
        if turn.actions and all(map(is_pure_print, turn.actions)):
            quote = quoted(" ; ".join(action.command or action.text for action in turn.actions))
            yield Penalty(turn.step.index, 4, "a script that only prints literals", quote)
