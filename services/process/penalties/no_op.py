"""Rule 2, no-operation commands: every command of the step's calls is ``true``, ``:``, ``exit`` or a numeric
``sleep``.

Chains, pipes, groups, loops and conditions of such commands count as they do, wrappers (``time``, ``timeout 5``,
``bash -c``) are looked through, and a redirection that can write a file, an expansion or a redefinition ends the
matter. Text that does not parse is left alone. A step with any other call is not penalised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.process.penalties.actions import Action, Turn
from services.process.penalties.behaviour import Kind
from services.process.penalties.evidence import Penalty, quoted

_ONLY = frozenset({Kind.NOTHING})


def is_no_op(action: Action) -> bool:
    return action.command is not None and action.behaviour.kinds == _ONLY


def check(turns: Sequence[Turn]) -> Iterator[Penalty]:
    for turn in turns:
        if turn.actions and all(map(is_no_op, turn.actions)):
            quote = quoted(" ; ".join(action.command or "" for action in turn.actions))
            yield Penalty(turn.step.index, 2, "only no-op commands", quote)
