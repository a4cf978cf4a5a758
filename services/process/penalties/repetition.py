"""Rule 1, consecutive repetition: the third and every later back-to-back run of one normalised shell command.

Runs are counted call by call, over steps and stages alike. Any other call in between ends the sequence; a turn without
a call does not (else one sentence between runs would evade the rule). A text that does not parse is compared as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.process.penalties.actions import Turn
from services.process.penalties.evidence import Penalty, quoted


def check(turns: Sequence[Turn]) -> Iterator[Penalty]:
    last: int | None = None
    first = run = 0
    for turn in turns:
        flagged = False
        for action, identity in zip(turn.actions, turn.identities, strict=True):
            if identity is None:
                last, run = None, 0
            elif identity == last:
                run += 1
            else:
                last, run, first = identity, 1, turn.step.index
            if run >= 3 and not flagged:
                flagged = True
                detail = f"run {run} in a row of the same command"
                yield Penalty(turn.step.index, 1, detail, quoted(action.command or ""), first)
