"""Rule 3, constant shell output: the step's calls only print constants, by ``echo``, ``printf`` or a ``cat`` of
constant text.

No-ops may stand beside the prints. Exempt is what reads or changes anything: an expansion, a glob, a substitution, a
pipe into another program, a redirection into a file (one to ``/dev/null`` or another descriptor changes nothing and
exempts nothing). Exempt too is a harness's submit signal, which is an ``echo`` by contract.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.process.penalties.actions import Action, Turn
from services.process.penalties.behaviour import Kind
from services.process.penalties.evidence import Penalty, quoted

SUBMIT_SIGNALS = frozenset({"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT"})


def prints_constant(action: Action) -> bool:
    kinds = action.behaviour.kinds
    return action.command is not None and Kind.PRINTS in kinds and kinds <= {Kind.PRINTS, Kind.NOTHING}


def submits(action: Action) -> bool:
    return (action.behaviour.first_line or "").strip() in SUBMIT_SIGNALS


def check(turns: Sequence[Turn]) -> Iterator[Penalty]:
    for turn in turns:
        constant = [prints_constant(action) and not submits(action) for action in turn.actions]
        if not any(constant):
            continue
        idle = all(c or a.behaviour.kinds == {Kind.NOTHING} for c, a in zip(constant, turn.actions, strict=True))
        if idle:
            quote = quoted(" ; ".join(action.command or "" for action in turn.actions))
            yield Penalty(turn.step.index, 3, "prints constant text and nothing else", quote)
