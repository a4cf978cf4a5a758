"""Rule 3, constant shell output: each call of the step only prints constants, by ``echo``, ``printf`` or a ``cat`` of
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


def is_constant_output(action: Action) -> bool:
    kinds = action.behaviour.kinds
    constant = action.command is not None and Kind.PRINTS in kinds and kinds <= {Kind.PRINTS, Kind.NOTHING}
    return constant and (action.behaviour.first_line or "").strip() not in SUBMIT_SIGNALS


def check(turns: Sequence[Turn]) -> Iterator[Penalty]:
    for turn in turns:
        if turn.actions and all(map(is_constant_output, turn.actions)):
            quote = quoted(" ; ".join(action.command or "" for action in turn.actions))
            yield Penalty(turn.step.index, 3, "prints constant text and nothing else", quote)
